from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeStatsResponseType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATS_OK: _ClassVar[NodeStatsResponseType]
    NODE_NOT_FOUND: _ClassVar[NodeStatsResponseType]

class PodStatsResponseType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POD_STATS_OK: _ClassVar[PodStatsResponseType]
    POD_NOT_FOUND: _ClassVar[PodStatsResponseType]
NODE_STATS_OK: NodeStatsResponseType
NODE_NOT_FOUND: NodeStatsResponseType
POD_STATS_OK: PodStatsResponseType
POD_NOT_FOUND: PodStatsResponseType

class NodeStats(_message.Message):
    __slots__ = ("hostname", "timestamp", "cpu_allocatable", "cpu_capacity", "cpu_reservation", "cpu_utilization", "mem_allocatable", "mem_capacity", "mem_reservation", "mem_utilization")
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CPU_ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    CPU_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CPU_RESERVATION_FIELD_NUMBER: _ClassVar[int]
    CPU_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    MEM_ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    MEM_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MEM_RESERVATION_FIELD_NUMBER: _ClassVar[int]
    MEM_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    hostname: str
    timestamp: int
    cpu_allocatable: int
    cpu_capacity: int
    cpu_reservation: float
    cpu_utilization: float
    mem_allocatable: int
    mem_capacity: int
    mem_reservation: float
    mem_utilization: float
    def __init__(self, hostname: _Optional[str] = ..., timestamp: _Optional[int] = ..., cpu_allocatable: _Optional[int] = ..., cpu_capacity: _Optional[int] = ..., cpu_reservation: _Optional[float] = ..., cpu_utilization: _Optional[float] = ..., mem_allocatable: _Optional[int] = ..., mem_capacity: _Optional[int] = ..., mem_reservation: _Optional[float] = ..., mem_utilization: _Optional[float] = ...) -> None: ...

class NodeStatsResponse(_message.Message):
    __slots__ = ("type", "hostname")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    type: NodeStatsResponseType
    hostname: str
    def __init__(self, type: _Optional[_Union[NodeStatsResponseType, str]] = ..., hostname: _Optional[str] = ...) -> None: ...

class PodStats(_message.Message):
    __slots__ = ("name", "namespace", "hostname", "cpu_limit", "cpu_request", "cpu_usage", "mem_limit", "mem_request", "mem_usage", "mem_rss", "mem_cache", "mem_working_set", "mem_page_faults", "mem_page_faults_rate", "major_page_faults", "major_page_faults_rate", "net_rx", "net_rx_errors", "net_rx_errors_rate", "net_rx_rate", "net_tx", "net_tx_errors", "net_tx_errors_rate", "net_tx_rate")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    CPU_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CPU_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CPU_USAGE_FIELD_NUMBER: _ClassVar[int]
    MEM_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MEM_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MEM_USAGE_FIELD_NUMBER: _ClassVar[int]
    MEM_RSS_FIELD_NUMBER: _ClassVar[int]
    MEM_CACHE_FIELD_NUMBER: _ClassVar[int]
    MEM_WORKING_SET_FIELD_NUMBER: _ClassVar[int]
    MEM_PAGE_FAULTS_FIELD_NUMBER: _ClassVar[int]
    MEM_PAGE_FAULTS_RATE_FIELD_NUMBER: _ClassVar[int]
    MAJOR_PAGE_FAULTS_FIELD_NUMBER: _ClassVar[int]
    MAJOR_PAGE_FAULTS_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_RX_FIELD_NUMBER: _ClassVar[int]
    NET_RX_ERRORS_FIELD_NUMBER: _ClassVar[int]
    NET_RX_ERRORS_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_RX_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_TX_FIELD_NUMBER: _ClassVar[int]
    NET_TX_ERRORS_FIELD_NUMBER: _ClassVar[int]
    NET_TX_ERRORS_RATE_FIELD_NUMBER: _ClassVar[int]
    NET_TX_RATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    hostname: str
    cpu_limit: int
    cpu_request: int
    cpu_usage: int
    mem_limit: int
    mem_request: int
    mem_usage: int
    mem_rss: int
    mem_cache: int
    mem_working_set: int
    mem_page_faults: int
    mem_page_faults_rate: float
    major_page_faults: int
    major_page_faults_rate: float
    net_rx: int
    net_rx_errors: int
    net_rx_errors_rate: float
    net_rx_rate: float
    net_tx: int
    net_tx_errors: int
    net_tx_errors_rate: float
    net_tx_rate: float
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., hostname: _Optional[str] = ..., cpu_limit: _Optional[int] = ..., cpu_request: _Optional[int] = ..., cpu_usage: _Optional[int] = ..., mem_limit: _Optional[int] = ..., mem_request: _Optional[int] = ..., mem_usage: _Optional[int] = ..., mem_rss: _Optional[int] = ..., mem_cache: _Optional[int] = ..., mem_working_set: _Optional[int] = ..., mem_page_faults: _Optional[int] = ..., mem_page_faults_rate: _Optional[float] = ..., major_page_faults: _Optional[int] = ..., major_page_faults_rate: _Optional[float] = ..., net_rx: _Optional[int] = ..., net_rx_errors: _Optional[int] = ..., net_rx_errors_rate: _Optional[float] = ..., net_rx_rate: _Optional[float] = ..., net_tx: _Optional[int] = ..., net_tx_errors: _Optional[int] = ..., net_tx_errors_rate: _Optional[float] = ..., net_tx_rate: _Optional[float] = ...) -> None: ...

class PodStatsResponse(_message.Message):
    __slots__ = ("type", "name", "namespace")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    type: PodStatsResponseType
    name: str
    namespace: str
    def __init__(self, type: _Optional[_Union[PodStatsResponseType, str]] = ..., name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...
