"""The flow-graph service: tasks, jobs, resources and flow, and nothing that knows Kubernetes."""

import os

# The matrices that are multiplied here are small: a second thread of numpy's BLAS would only spin for a tenth of a
# second at each start. numpy reads this when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
