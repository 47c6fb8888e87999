"""Expected results of each sheet, with reasons, for comparison with the figures."""

EXPECTED = {
    "goals": (
        "Units and calls are counted and are the same on any machine; times are those of this machine. The read "
        "units of a job grow with the number of running jobs: the goal of 25 holds for a job alone and in bursts, "
        "not behind a deep queue with 80 running."
    ),
    "depth": (
        "The same units and calls in every row. A pass reads the running jobs (14 read units: 80 rows of about 700 "
        "bytes) and the first 32 waiting jobs of each lane (3 to 4 units each) with strong consistency; a submission "
        "reads the same at half the price. When a job ends and the next one takes its place, there is one such pass, "
        "and one read for each event of both jobs. Times: 10 to 60 ms for a pass, 20 to 80 for a submission, at "
        "every depth; nearly all of it is five to seven requests over loopback and the parsing of their responses."
    ),
    "baseline": (
        "The article's pass reads every row, including the request, twice: half a unit for each 4 KB, so 106 units "
        "for each 100 jobs; the figure for a million is computed from that. Its time grows with the depth too: 2 to "
        "4 seconds at 10,000. The article's algorithm costs less only while the queue is nearly empty: it keeps no "
        "history, no attempts and no fence, and loses jobs on any failure."
    ),
    "depth/answers": (
        "The same at every depth, except that a page can reach the end of a short queue. Each response reads one "
        "page, and the queue once if it includes positions or reasons. 2 to 60 ms."
    ),
    "growth": (
        "About one read unit for every eight running jobs and four for each lane, since rows have 450 to 700 bytes. "
        "A pass reads more than 32 jobs of a lane only if more of them could start or preempt: at most 1,000. "
        "Reading takes about 0.1 ms for each row, most of it in botocore's parser."
    ),
    "planner": (
        "7 to 30 microseconds for each job considered, so 14 to 40 ms and 200 to 600 ms: least if no job starts, "
        "most if each job has a priority of its own. The most expensive kind must stay within the goal, not only the "
        "usual one. The slowest runs of 10,000 include a run of Python's garbage collector."
    ),
    "life": (
        "23 write units alone: 6 to store, 6 to start, 1 each to confirm the launch, to record that the job runs, "
        "and for each of two passes, 7 to end. One unit less in a burst, where jobs share passes. Text that does not "
        "compress adds one KB, charged twice in a transaction. A preemption adds about 24 for both jobs together. "
        "The put, updates and delete of the article (Chaim Rand, 2024) write the whole request each time (5 units), "
        "and its scans read all waiting jobs."
    ),
    "life/steps": "A transaction costs twice the kilobytes that it writes, and two units for the check of the fence.",
    "idle": (
        "One write unit to increment the pass number, and one read of the queue, every minute, with or without jobs."
    ),
    "start": (
        "On a quiet machine 150 to 180 ms for the API, about 45% of the time without compiled files; half of that for "
        "the manager, which imports no pydantic. The classes of models and dataclasses are a third of the API's "
        "import. If other processes use the machine, the CPU time is more reliable than the wall time. boto3 and the "
        "service models of botocore are most of the rest."
    ),
    "start/bundle": (
        "7 MB for the API and 4 MB for the manager, which needs no pydantic. Compiled files are half of each; boto3 "
        "comes with the runtime."
    ),
}
