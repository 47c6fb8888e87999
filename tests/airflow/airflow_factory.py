"""The session factory that the tests configure. Airflow imports it while it imports its hooks."""

from trainmaster.integrations.airflow import QueueSessionFactory


class QuickFactory(QueueSessionFactory):
    """The shipped factory, which looks at jobs that wait more often."""

    queue_poll_seconds = 0.05
