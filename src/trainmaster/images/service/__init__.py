"""Image jobs: how requests are taken in, and how their work is started, stopped and asked after."""
