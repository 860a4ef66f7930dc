"""Measured usage of pods and nodes: polled from metrics.k8s.io and Prometheus, sent to the flow service.

metrics_api ──┐
              ├──► gathered (one row a pod and node) ──► collector ──► engine.report_usage
prometheus ───┘
"""
