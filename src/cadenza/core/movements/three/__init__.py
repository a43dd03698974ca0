"""``phases: three``: a movement is performed, then reports, then says its status, each in calls of its own.

Source of behaviour: TAKT's command-line engine, corrected by its later versions where its users were hurt.
"""
