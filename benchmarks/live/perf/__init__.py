"""Cases in the shape of scheduler_perf, the performance suites of kube-scheduler itself."""
