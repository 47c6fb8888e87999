"""What each sheet was expected to show, and why: read it before the figures, and ask when they differ."""

EXPECTED = {
    "goals": (
        "Units and calls are counted, and the same on any machine; times are of this one. The read units of a life "
        "grow with running jobs: the goal of 25 holds alone and in bursts, not behind a deep queue with 80 running."
    ),
    "depth": (
        "The same units and calls in every row. A pass reads the running jobs (14 read units: 80 rows of about 700 "
        "bytes) and the first 32 waiting ones of each lane (3 to 4 units each), strongly consistent; a submission "
        "reads the same at half the price. Where a job ends and the next one takes its place there is one such pass, "
        "and the events of both jobs, each of which is read. Times: 10 to 60 ms for a pass, 20 to 80 for a submission, "
        "whatever the depth; nearly all of it is five to seven requests over loopback, and parsing what they bring."
    ),
    "baseline": (
        "The article's pass reads every row, with the request in it, twice: half a unit for each 4 KB, so 106 units "
        "for each 100 jobs; a million is computed from that. Its time grows with the depth too: 2 to 4 seconds at "
        "10,000. It is the cheaper one only while next to nothing waits: it keeps no history, no attempts and no "
        "fence, and loses jobs when anything goes wrong."
    ),
    "depth/answers": (
        "The same at every depth, except that a page may reach the end of a short queue. One page, and one survey "
        "where the answer tells positions or reasons. 2 to 60 ms."
    ),
    "growth": (
        "About one read unit for every eight running jobs and four for each lane, since rows have 450 to 700 bytes. A "
        "lane is read deeper than 32 only where more jobs of it could start or preempt: at most 1,000. Reading takes "
        "about 0.1 ms for each row, most of it botocore's parsing."
    ),
    "planner": (
        "7 to 30 microseconds for each job that is looked at, so 14 to 40 ms and 200 to 600 ms: least where nothing "
        "starts, most where each job has a priority of its own. The dearest kind must stay within the goal, not only "
        "the usual one. The slowest of 10,000 are those in which Python's garbage collector ran."
    ),
    "life": (
        "23 write units alone: 6 to store, 6 to start, 1 each to confirm it, to come to work, and for each of two "
        "passes, 7 to end. One unit less in a burst, where jobs share passes. Text that does not compress adds "
        "one KB, twice for being a transaction. A preemption adds about 24 for both jobs together. The article's put, "
        "updates and delete write the whole request each time (5 units), and its scans read all that wait."
    ),
    "life/steps": "A transaction costs twice the kilobytes that it writes, and two units for the fence's check.",
    "idle": "One unit to count the pass up, and one reading of the queue, every minute, whether or not there are jobs.",
    "start": (
        "350 to 450 ms for the API as built, 150 to 200 compiled; 110 to 130 and 55 to 65 for the manager, which "
        "imports no pydantic. Lambda's bundle has no compiled files, as SAM leaves none, so each new environment "
        "compiles what it imports: that doubles it. Where others use the machine, the processor's time is the truer "
        "figure. boto3 and the service models of botocore are most of the rest."
    ),
    "start/bundle": "3 to 5 MB. Nine tenths are pydantic and Powertools; boto3 is the runtime's.",
}
