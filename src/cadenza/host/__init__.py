"""The run's folder in the workspace: making it, snapshots of what a prompt was made of, reports."""
