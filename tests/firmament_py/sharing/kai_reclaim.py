"""The cases that KAI publishes for reclaim (actions/integration_tests, 0.17), those of whole devices."""

from tests.firmament_py.sharing.published import Played

RECLAIM = [
    Played(
        "reclaim 1",
        "q0 1 w1; q1 1 w1",
        "n0 2",
        "a q0 2 @n0; b q1 1 +1",
        "a=0 b=1",
    ),
    Played(
        "reclaim 2",
        "q0 2 w2; q1 2 w2",
        "n0 2; n1 2",
        "a q0 1 @n0; b q1 2 @n1; c q1 1 @n0; d q0 1 +1",
        "a=1 b=1 c=0 d=1",
    ),
    Played(
        "reclaim 3",
        "q0 2 w2; q1 2 w2",
        "n0 2; n1 2",
        "a q0 1 @n1; b q0 2 @n0; c q1 1 @n1; d q1 1 +1",
        "a=1 b=0 c=1 d=1",
        "a=0 b=1 c=1 d=1",
        "a's task alone suffices; b's would leave q0 with less than its share",
    ),
    Played(
        "reclaim 4",
        "q0 2 w2; q1 1 w1",
        "n0 2; n1 2",
        "a q0 1 @n1; b q0 2 @n0; c q1 1 @n1; d q1 1 +1",
        "a=1 b=1 c=1 d=0",
    ),
    Played(
        "reclaim 5",
        "q0 2 w2; q1 1 w1",
        "n0 2; n1 2",
        "a q0 1 @n1; b q0 2 @n0; c q1 1 @n1; d q1 1 +1",
        "a=1 b=1 c=1 d=0",
    ),
    Played(
        "reclaim 6",
        "q0 6 w6; q1 5 w5",
        "n0 8",
        "a q0 8 @n0; b q1 5 +1",
        "a=0 b=1",
    ),
    Played(
        "reclaim 7",
        "q0 2 w2; q1 2 w2",
        "n0 4",
        "a q0 2 @n0; b q0 1 @n0; c q1 1 @n0; d q1 3 +1; e q1 1 +1; f q0 1 +1",
        "a=1 b=1 c=1 d=0 e=0 f=0",
        "a=1 b=0 c=1 d=0 e=1 f=0",
        "KAI calls its outcome a defect; e is within the share of q1",
    ),
    Played(
        "reclaim 8",
        "q0 1 w1; q1 1 w1; q2 0 w0",
        "n0 4",
        "a q0 2 @n0; b q0 1 @n0; c q2 1 @n0; d q1 1 +1",
        "a=1 b=1 c=0 d=1",
    ),
    Played(
        "reclaim 9",
        "q0 1 w1; q1 1 w1; q2 1 w0 !101",
        "n0 4",
        "a q0 1 @n0; b q0 1 @n0; c q2 1 @n0; d q2 1 @n0; e q1 1 +1",
        "a=1 b=0 c=1 d=1 e=1",
        "a=1 b=1 c=1 d=0 e=1",
        "then b is below the share of q0, 2, and q2 above its own, 1",
    ),
    Played(
        "reclaim 10",
        "q0 1 w1; q1 1 w1",
        "n0 8",
        "a q0 1 @n0; b q0 3 @n0; c q0 4 @n0; d q1 4 +1; e q1 4 +1",
        "a=1 b=1 c=0 d=1 e=0",
    ),
    Played(
        "reclaim 11",
        "q0 2 w2; q1 1 w1",
        "n0 7",
        "a q0 4 @n0; b q1 3 @n0; c q0 1 +1",
        "a=1 b=0 c=1",
    ),
    Played(
        "reclaim 12",
        "d0 1 w1; d1 1 w1; q0 1 w1 in d0; q1 1 w1 in d1",
        "n0 2",
        "a q0 1 @n0; b q0 1 !100 fixed @n0; c q1 1 +1",
        "a=0 b=1 c=1",
    ),
    Played(
        "reclaim 13",
        "d0 1 w1; d1 1 w1; q0 1 w1 in d0; q1 1 w1 in d1",
        "n0 2",
        "a q0 1 @n0; b q0 1 !100 fixed @n0; c q1 1 !100 fixed +1",
        "a=0 b=1 c=1",
    ),
    Played(
        "reclaim 14",
        "d0 2 w2; d1 2 w2; q0 1 w1 in d0; q1 1 w1 in d1; q2 1 w1 in d1",
        "n0 4",
        "a q0 3 @n0; b q1 1 !100 fixed @n0; c q1 2 +1",
        "a=1 b=1 c=0",
    ),
    Played(
        "reclaim 15",
        "d0 1 w1; d1 1 w1; q0 1 w1 in d0; q1 1 w1 in d1",
        "n0 8",
        "a q0 4 @n0; b q0 1 @n0; c q1 4 +1",
        "a=1 b=0 c=1",
    ),
    Played(
        "reclaim 16",
        "d0 1 w1; q0 1 w2 in d0; q1 1 w1 in d0; q2 0 w1 in d0 !101",
        "n0 8",
        "a q0 1 @n0; b q0 1 @n0; c q0 1 @n0; d q0 1 @n0; e q0 1 @n0; f q1 1 @n0; g q1 1 @n0; h q1 1 @n0; i q2 3 +1",
        "a=1 b=1 c=1 d=0 e=0 f=1 g=1 h=0 i=1",
    ),
    Played(
        "reclaim 17",
        "d0 0 w0; d1 4 w4; q0 1 w1 in d0; q1 0 w0 in d1; q2 4 w4 in d1",
        "n0 4",
        "a q0 2 @n0; b q1 2 @n0; c q2 4 +1",
        "a=0 b=0 c=1",
    ),
    Played(
        "reclaim 18",
        "q0 0 w0; q1 1 w1",
        "n0 2",
        "a q0 2 @n0; b q1 2 !100 fixed +1; c q1 1 !100 fixed +1",
        "a=0 b=0 c=1",
    ),
    Played(
        "reclaim 19",
        "q0 4 w4; q1 2 w2",
        "n0 8",
        "a q0 5 @n0; b q0 1 @n0; c q0 1 @n0; d q1 3 +1",
        "a=1 b=0 c=0 d=1",
    ),
    Played(
        "reclaim 20",
        "q0 4 w4; q1 4 w4; q2 10 w10",
        "n0 9",
        "a q0 5 @n0; b q0 2 @n0; c q0 1 @n0; d q2 1 +1; e q1 3 +1",
        "a=1 b=0 c=0 d=1 e=1",
    ),
    Played(
        "reclaim 21",
        "q0 2 w2; q1 1 w1",
        "n0 4",
        "a q0 3 @n0; b q1 2 +1",
        "a=1 b=0",
    ),
    Played(
        "reclaim 22",
        "q0 0 w0; q1 1 w1",
        "n0 1 memory=0.1",
        "a q0 0 cpu=0.002 memory=0.05 @n0; b q0 0 cpu=0.002 memory=0.05 @n0; c q1 0 cpu=0.002 memory=0.05 +1; "
        "d q1 0 cpu=0.002 memory=0.05 +1",
        "a=1 b=1 c=0 d=0",
    ),
    Played(
        "reclaim 23",
        "q0 0 w0; q1 1 w1",
        "n0 1 memory=0.1",
        "a q0 0 cpu=0.002 memory=0.05 @n0; b q0 1 cpu=0.002 memory=0.05 @n0; c q1 0 cpu=0.002 memory=0.05 +1; "
        "d q1 1 cpu=0.002 memory=0.05 +1",
        "a=1 b=0 c=1 d=0",
    ),
    Played(
        "reclaim 24",
        "q0 5 w5; q1 0 w0; q2 5 w5",
        "n0 10 memory=0.2",
        "a q0 2 !100 fixed cpu=0.002 memory=0.05 @n0; b q0 3 !100 fixed cpu=0.003 memory=0.05 @n0; "
        "c q1 1 cpu=0.001 memory=0.05 @n0; d q1 0 cpu=0.004 memory=0.05 @n0; "
        "e q2 3 !100 fixed cpu=0.001 memory=0.05 +1; f q2 0 !100 fixed cpu=0.003 memory=0.05 +1; "
        "g q2 2 !100 fixed cpu=0.001 memory=0.05 +1",
        "a=1 b=1 c=0 d=0 e=1 f=1 g=0",
    ),
    Played(
        "reclaim 25",
        "q0 0 w0 cpu=0 memory=0; q1 1 w1",
        "n0 1 memory=0.1",
        "a q0 0 cpu=0.002 memory=0.05 @n0; b q0 0 cpu=0.002 memory=0.05 @n0; c q1 0 cpu=0.002 memory=0.05 +1; "
        "d q1 0 cpu=0.002 memory=0.05 +1",
        "a=0 b=0 c=1 d=1",
    ),
    Played(
        "reclaim 26",
        "q0 0 w0 cpu=0 memory=0; q1 1 w1",
        "n0 1 memory=0.1",
        "a q0 0 cpu=0.002 memory=0.05 @n0; b q0 1 cpu=0.002 memory=0.05 @n0; c q1 0 cpu=0.002 memory=0.05 +1; "
        "d q1 1 cpu=0.002 memory=0.05 +1",
        "a=0 b=0 c=1 d=1",
    ),
    Played(
        "reclaim 27",
        "q0 5 w5; q1 0 w0 cpu=0 memory=0; q2 5 w5",
        "n0 10 memory=0.2",
        "a q0 2 !100 fixed cpu=0.002 memory=0.04 @n0; b q0 3 !100 fixed cpu=0.003 memory=0.04 @n0; "
        "c q1 1 cpu=0.001 memory=0.04 @n0; d q1 0 cpu=0.004 memory=0.04 @n0; "
        "e q2 3 !100 fixed cpu=0.001 memory=0.04 +1; f q2 0 !100 fixed cpu=0.003 memory=0.04 +1; "
        "g q2 2 !100 fixed cpu=0.001 memory=0.04 +1",
        "a=1 b=1 c=0 d=0 e=1 f=1 g=1",
    ),
    Played(
        "reclaim 28",
        "q0 5 w5; q1 1 w1 cpu=0 memory=0; q2 5 w5",
        "n0 10 memory=0.2",
        "a q0 2 !100 fixed cpu=0.002 memory=0.04 @n0; b q0 3 !100 fixed cpu=0.003 memory=0.04 @n0; "
        "c q1 1 cpu=0.001 memory=0.04 @n0; d q1 0 cpu=0.004 memory=0.04 @n0; "
        "e q2 3 !100 fixed cpu=0.001 memory=0.04 +1; f q2 0 !100 fixed cpu=0.003 memory=0.04 +1; "
        "g q2 2 !100 fixed cpu=0.001 memory=0.04 +1",
        "a=1 b=1 c=0 d=0 e=1 f=1 g=1",
    ),
    Played(
        "reclaim 29",
        "q0 0 w0 cpu=0 memory=0; q1 1 w1",
        "n0 1 memory=0.04",
        "a q0 0 cpu=0.004 memory=0.04 @n0; b q1 0 !100 fixed cpu=0.004 memory=0.04 +1",
        "a=0 b=1",
    ),
    Played(
        "reclaim 30",
        "q0 0 w0 cpu=0 memory=0; q1 1 w1",
        "n0 1 cpu=100 memory=0.2",
        "a q0 0 cpu=0.005 memory=0.05 @n0; b q0 0 cpu=0.005 memory=0.05 @n0; "
        "c q1 0 !100 fixed cpu=0.005 memory=0.05 +1; d q1 0 !100 fixed cpu=0.005 memory=0.05 +1",
        "a=1 b=1 c=1 d=1",
    ),
    Played(
        "reclaim 31",
        "q0 0 w0 cpu=0 memory=0; q1 1 w1",
        "n0 1 memory=0.2",
        "a q0 0 cpu=0.002 memory=0.05 @n0; b q0 0 cpu=0.002 memory=0.05 @n0; "
        "c q1 0 !100 fixed cpu=0.002 memory=0.05 +1; d q1 0 !100 fixed cpu=0.002 memory=0.05 +1",
        "a=1 b=1 c=1 d=1",
    ),
    Played(
        "reclaim 32",
        "q0 0 w0 cpu=0 memory=0; q1 1 w1",
        "n0 2 cpu=100 memory=0.2",
        "a q0 0 cpu=0.005 memory=0.05 @n0; b q0 0 cpu=0.005 memory=0.05 @n0; "
        "c q1 2 !100 fixed cpu=0.005 memory=0.05 +1; d q1 2 !100 fixed cpu=0.005 memory=0.05 +1",
        "a=1 b=1 c=0 d=0",
    ),
    Played(
        "reclaim 33",
        "d0 2 w2; d1 2 w2; q0 2 w3 in d0; q1 2 w0 in d1",
        "n0 3; n1 3",
        "a q0 2 @n0; b q0 2 !100 fixed @n1; c q1 2 +1",
        "a=0 b=1 c=1",
    ),
    Played(
        "reclaim 34",
        "d0 3 w3; d1 3 w3; q0 3 w0 in d0; q1 2 w0 in d1; q2 1 w0 in d1",
        "n0 3; n1 3",
        "a q0 2 @n0; b q0 1 !100 fixed @n1; c q1 2 @n1; d q1 1 @n0; e q2 1 +1",
        "a=1 b=1 c=1 d=0 e=1",
    ),
    Played(
        "reclaim 35",
        "d0 1 w1; d1 1 w1; q0 1 w1 in d0; q1 1 w1 in d1",
        "n0 3; n1 3",
        "a q0 2 @n0; b q0 1 !100 fixed @n1; c q1 2 @n1; d q1 1 @n0; e q1 1 +1",
        "a=1 b=1 c=1 d=1 e=0",
    ),
    Played(
        "reclaim 36",
        "d0 2 w2; d1 2 w2; q0 1 w0 in d0; q1 1 w0 in d1",
        "n0 1; n1 1",
        "a q0 1 @n0; b q1 1 !100 fixed @n1; c q1 1 +1",
        "a=1 b=1 c=0",
    ),
    Played(
        "reclaim 37",
        "q0 1 w0; q1 2 w1",
        "n0 3",
        "a q0 1 @n0,n0 min=1; b q1 1 +3 min=1",
        "a=1 b=2",
    ),
]
