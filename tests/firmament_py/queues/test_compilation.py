"""What is compiled ahead is what rounds use."""

from typing import Any

from firmament_py.queues.admission_order import admit_in_order
from firmament_py.queues.compilation import compile_all
from firmament_py.queues.water_filling import divide


def test_all_is_compiled_for_the_types_of_rounds():
    """test_admission.test_nothing_is_compiled_twice asserts that rounds add no other types."""
    compile_all()
    compiled: list[Any] = [divide, admit_in_order]
    assert [len(function.signatures) for function in compiled] == [1, 1]
