"""The HTTP face: runs, requests and events for programs and for other machines' people."""
