"""What each sheet was expected to show, and why: read it before the figures, and ask when they differ."""

EXPECTED = {
    "goals": "Units and calls are counted, and the same on any machine; times are of this one.",
    "depth": (
        "The same units and calls in every row. A pass reads the running jobs (14 read units: 80 rows of about 700 "
        "bytes) and the first 32 waiting ones of each lane (4 units each), strongly consistent; a submission reads "
        "the same at half the price. The end of a job costs two such passes, since a pass that started something in a "
        "deep lane is followed by another. Times vary with the machine, not with the depth."
    ),
    "baseline": (
        "The article's pass reads every row, with the request in it, twice: half a unit for each 4 KB, so 106 units "
        "for each 100 jobs; a million is computed from that. It is the cheaper one only while next to nothing waits: "
        "it keeps no history, no attempts and no fence, and loses jobs when anything goes wrong."
    ),
    "depth/answers": (
        "The same at every depth, except that a page may reach the end of a short queue. One page, and one survey "
        "where the answer tells positions or reasons."
    ),
    "growth": (
        "About one read unit for every six running jobs and four for each lane, since rows have 500 to 700 bytes. A "
        "lane is read deeper than 32 only where more jobs of it could start or preempt: at most 1,000."
    ),
    "planner": (
        "Some microseconds for each job that is looked at; more for jobs that may preempt, up to the pass's bound of "
        "50 actions. The dearest kind must stay within the goal, not only the usual one."
    ),
    "life": (
        "21 write units alone: 6 to store, 6 to start, 1 each to confirm it, to come to work, and for each of "
        "two passes, 5 to end. Half a unit less in a burst, where jobs share passes. Text that does not compress adds "
        "one KB, twice for being a transaction. A preemption adds about 23 for both jobs together. The article's put, "
        "updates and delete write the whole request each time (5 units), and its scans read all that wait."
    ),
    "life/steps": "A transaction costs twice the kilobytes that it writes, and two units for the fence's check.",
    "idle": "One unit to count the pass up, and one reading of the queue, every minute, whether or not there are jobs.",
    "start": (
        "Lambda's bundle has no compiled files, as SAM leaves none, so each new environment compiles what it imports: "
        "that doubles it. Where others use the machine, the processor's time is the truer figure. The manager imports "
        "no pydantic."
    ),
    "start/bundle": "Nine tenths are pydantic and Powertools; boto3 is the runtime's.",
}
