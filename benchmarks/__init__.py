"""What Cadenza costs, each figure beside a reference measured in the same run.

``python -m benchmarks`` runs all programs, ``python -m benchmarks.NAME`` one. Times are CPU times unless a
row says otherwise: user and system time of the process, all its threads included.
"""
