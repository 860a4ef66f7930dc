"""What pods and nodes really use: asked of metrics.k8s.io and Prometheus, told to the flow service.

metrics_api ──┐
              ├──► gathered (one row a pod and node) ──► collector ──► engine.report_usage
prometheus ───┘
"""
