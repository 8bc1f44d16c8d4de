"""The documents of a manager. Written by `make reference` from the description that
``GET /openapi.json`` serves. Do not edit."""

from typing import Any, Dict, List, Optional, TypedDict


class _Task(TypedDict):
    first: int
    index: int
    size: int


class Task(_Task, total=False):
    at_once: int


class _Ahead(TypedDict):
    gpus: int
    gpus_held: int
    gpus_max: int
    gpus_min: int
    id: int
    name: str
    state: str


class Ahead(_Ahead, total=False):
    array: Task


class _Attempt(TypedDict):
    attempt: int
    gpus: Optional[List[str]]
    lost_s: float
    marks: Optional[List[str]]
    ordered: str
    reason: str


class Attempt(_Attempt, total=False):
    batch: int
    by: int
    ended: str
    given: int
    outcome: str
    stopped: str
    up: str
    work_from: str


class Attempts(TypedDict):
    attempts: Optional[List[Attempt]]
    job: int
    schema: str


class Band(TypedDict):
    at: str
    high: float
    low: float
    median: float


class _Bid(TypedDict):
    held: int
    holds: float
    job: int
    left_s: float
    price: float
    wants: int
    worth: float


class Bid(_Bid, total=False):
    kept: bool
    text: str


class Bucket(TypedDict):
    at: str
    max: float
    mean: float
    min: float


class Calibrating(TypedDict):
    early: int
    inside: int
    judged: int
    late: int
    lead_s: float
    of: str
    pending: int
    pit: Optional[List[int]]
    system: str
    void: int


class _Calibration(TypedDict):
    expected: float
    kept: int
    most: int
    rows: Optional[List[Calibrating]]
    schema: str


class Calibration(_Calibration, total=False):
    since: str


class Reason(TypedDict):
    a: float
    b: float
    code: str
    job: int
    text: str


class _Chosen(TypedDict):
    gpus: Optional[List[str]]
    job: int
    name: str
    reason: Reason


class Chosen(_Chosen, total=False):
    text: str


class Clean(TypedDict, total=False):
    dry: bool
    older_s: float
    outputs: bool
    runs: bool
    snapshots: bool


class _Left(TypedDict):
    job: int
    why: str


class Left(_Left, total=False):
    attempt: int


class _Cleaned(TypedDict):
    attempts: int
    bytes: int
    jobs: int
    left: Optional[List[Left]]
    schema: str


class Cleaned(_Cleaned, total=False):
    dry: bool
    scripts: Optional[List[str]]


class _Within(TypedDict):
    high: str
    known: bool
    low: str
    median: str


class Within(_Within, total=False):
    alone: bool


class _Failure(TypedDict):
    attempt: int
    retries: int
    retries_left: int
    text: str


class Failure(_Failure, total=False):
    signal: str
    tail: Optional[List[str]]


class Webhook(TypedDict):
    from_file: str


class Notify(TypedDict, total=False):
    desktop: bool
    mail: str
    on: Optional[List[str]]
    run: str
    webhook: Webhook


class _Retries(TypedDict):
    max: int


class Retries(_Retries, total=False):
    backoff: str
    on: Optional[List[str]]


class _TimeLimit(TypedDict):
    max: str


class TimeLimit(_TimeLimit, total=False):
    each: bool
    warn: str


class Keys(TypedDict, total=False):
    gpu_memory_gb: float
    gpu_type: Optional[List[str]]
    grace: str
    notify: Optional[List[Notify]]
    preemptible: str
    retries: int
    retry: Retries
    snapshot: str
    time_limit: TimeLimit
    wall_time: str


class _NoticeTry(TypedDict):
    at: str
    job: int
    outcome: str


class NoticeTry(_NoticeTry, total=False):
    why: str


class _NoticeState(TypedDict):
    way: str


class NoticeState(_NoticeState, total=False):
    failed: NoticeTry
    sent: NoticeTry


class _Paths(TypedDict):
    dir: str


class Paths(_Paths, total=False):
    checkpoint: str
    error: str
    output: str
    program: str
    tasks: int


class _Job(TypedDict):
    attempt: int
    gpu_seconds: float
    gpus: Optional[List[str]]
    gpus_max: int
    gpus_min: int
    gpus_want: int
    id: int
    name: str
    preemptions: int
    queue_s: float
    resizes: int
    run_s: float
    state: str
    submitted: str


_JobWords = TypedDict("_JobWords", {"class": str}, total=False)


class Job(_Job, _JobWords, total=False):
    array: Task
    batch: int
    cpus: float
    end: Within
    ended: str
    energy_j: float
    exit_code: int
    failure: Failure
    gpu_memory_peak_gb: float
    gpu_seconds_in_use: float
    group: str
    keys: Keys
    lost_s: float
    memory_gb: float
    model: str
    notices: Optional[List[NoticeState]]
    outcome: str
    owner: str
    paths: Paths
    preemptible: str
    priority: int
    protected: bool
    ref: str
    saves: str
    shares_with: Optional[List[int]]
    speed: float
    start: Within
    started: str
    step: int
    stops_for_others: int
    text: str
    time_limit: str
    total: int
    unsaved_s: float
    user: str
    why: str
    worth: float


class _Problem(TypedDict):
    detail: str
    status: int
    title: str


_ProblemWords = TypedDict("_ProblemWords", {"from": int}, total=False)


class Problem(_Problem, _ProblemWords, total=False):
    code: str
    instead: str


class CommandedJob(TypedDict, total=False):
    job: Job
    problem: Problem


class Commanded(TypedDict):
    jobs: Optional[List[CommandedJob]]
    schema: str


class Commanding(TypedDict):
    command: str
    jobs: Optional[List[str]]


class _Figure(TypedDict):
    name: str
    value: float


class Figure(_Figure, total=False):
    text: str
    unit: str


class Decision(TypedDict):
    at: str
    chosen: Optional[List[Chosen]]
    event: str
    figures: Optional[List[Figure]]
    free: Optional[List[str]]
    gpus: Optional[List[str]]
    job: int
    name: str
    ordered: bool
    reason: Reason
    refused: Optional[List[Chosen]]
    schema: str
    sentence: str
    seq: int
    system: str
    unit: str
    waited: Optional[List[Ahead]]
    was: Optional[List[str]]


class _Displaced(TypedDict):
    at: str
    by: int
    lost_s: float
    name: str
    rule: str
    text: str


class Displaced(_Displaced, total=False):
    back: str


class _Edit(TypedDict):
    keys: str


class Edit(_Edit, total=False):
    dir: str


class _Edited(TypedDict):
    job: Job
    next: Optional[List[str]]
    now: Optional[List[str]]
    schema: str


class Edited(_Edited, total=False):
    notes: Optional[List[str]]


class ErrorDetail(TypedDict, total=False):
    location: str
    message: str
    value: Any


class ErrorModel(TypedDict, total=False):
    detail: str
    errors: Optional[List[ErrorDetail]]
    instance: str
    status: int
    title: str
    type: str


class _Estimate(TypedDict):
    id: int
    name: str


class Estimate(_Estimate, total=False):
    end: Within
    notes: Optional[List[str]]
    older: int
    ref: str
    start: Within


class _Expected(TypedDict):
    gpus: int
    id: int
    name: str
    ref: str
    state: str


class Expected(_Expected, total=False):
    end: Within
    start: Within


class _GPU(TypedDict):
    jobs: Optional[List[int]]
    name: str
    state: str


class GPU(_GPU, total=False):
    by: str
    held_idle: bool
    memory_mb: float
    node: str
    of_mb: float
    type: str
    use: float
    watts: float
    why: str


class _Info(TypedDict):
    capabilities: Optional[List[str]]
    host: str
    pid: int
    problems: Optional[List[str]]
    schema: str
    settings: Dict[str, Any]
    since: str
    state: str
    system: str
    version: str


class Info(_Info, total=False):
    leader: str
    role: str
    you: str


class _Jobs(TypedDict):
    jobs: Optional[List[Job]]
    now: str
    schema: str
    system: str
    total: int
    unit: str


class Jobs(_Jobs, total=False):
    foreseen_at: str


class UserHours(TypedDict):
    coming_up: float
    redone: float
    stopping: float
    useful: float
    user: str


_LossesWords = TypedDict("_LossesWords", {"from": str}, total=False)


class Losses(_LossesWords):
    by_class: Dict[str, Any]
    gpu_hours: float
    schema: str
    to: str
    users: Optional[List[UserHours]]


class _Node(TypedDict):
    gpus: Optional[List[str]]
    name: str
    state: str


class Node(_Node, total=False):
    rack: int
    type: str


class Nodes(TypedDict):
    drained: bool
    gpus: Optional[List[GPU]]
    node: str
    nodes: Optional[List[Node]]
    schema: str
    unit: str


class _Outlook(TypedDict):
    at: str
    busy: Optional[List[Band]]
    draws: int
    jobs: Optional[List[Expected]]
    known: bool
    queue: Optional[List[Band]]
    schema: str
    seq: int


class Outlook(_Outlook, total=False):
    rests_on: str
    until: str


class _TypePrice(TypedDict):
    gpus: int
    price: float


class TypePrice(_TypePrice, total=False):
    type: str


class Price(TypedDict):
    bids: Optional[List[Bid]]
    now: str
    prices: Optional[List[TypePrice]]
    schema: str
    system: str


class Priority(TypedDict, total=False):
    above: str
    below: str
    priority: int


class Resize(TypedDict, total=False):
    gpus_max: int
    gpus_min: int
    gpus_want: int


class _Remedy(TypedDict):
    change: str
    displaces: Optional[List[int]]
    gpus: Optional[List[str]]
    id: str
    text: str
    value: str


class Remedy(_Remedy, total=False):
    command: str
    resize: Resize


class Remedied(TypedDict):
    job: Job
    remedy: Remedy
    schema: str


_SeriesWords = TypedDict("_SeriesWords", {"from": str}, total=False)


class Series(_SeriesWords):
    known: bool
    name: str
    points: Optional[List[Bucket]]
    schema: str
    to: str
    unit: str
    width_s: float


class _Signal(TypedDict):
    signal: str


class Signal(_Signal, total=False):
    to: str


class _Submission(TypedDict):
    dir: str
    file: str


class Submission(_Submission, total=False):
    dry: bool
    env: Dict[str, Any]
    inherit: Dict[str, Any]
    name: str
    paused: bool
    scripts: Dict[str, Any]


class _Submitted(TypedDict):
    jobs: Optional[List[Estimate]]
    schema: str


class Submitted(_Submitted, total=False):
    dry: bool
    rests_on: str


class _UsageRow(TypedDict):
    coming_up: float
    held_gpu_hours: float
    jobs: int
    redone: float
    redone_by: Dict[str, Any]
    stopping: float
    useful: float
    wait_hours: float


class UsageRow(_UsageRow, total=False):
    cost: float
    day: str
    group: str
    job: int
    kwh: float
    model: str
    name: str
    user: str


class _Usage(TypedDict):
    by: Optional[List[str]]
    rows: Optional[List[UsageRow]]
    schema: str
    to: str


_UsageWords = TypedDict("_UsageWords", {"from": str}, total=False)


class Usage(_Usage, _UsageWords, total=False):
    energy: str


class UseRemedy(TypedDict):
    id: str


class _UserFigures(TypedDict):
    failed: int
    finished: int
    gpu_hours: float
    jobs: int
    lost_gpu_hours: float
    mean_wait_s: float
    preempted: int
    share: float
    user: str


class UserFigures(_UserFigures, total=False):
    energy_kwh: float


_UsersWords = TypedDict("_UsersWords", {"from": str}, total=False)


class Users(_UsersWords):
    gpu_hours: float
    schema: str
    to: str
    users: Optional[List[UserFigures]]


class _WhatIf(TypedDict):
    id: str
    of: int
    schema: str
    seq: int
    simulated: int
    state: str
    systems: Optional[List[str]]


class WhatIf(_WhatIf, total=False):
    error: str
    result: Any
    system: str


class WhatIfQuestion(TypedDict, total=False):
    systems: Optional[List[str]]


class _Why(TypedDict):
    ahead: Optional[List[Ahead]]
    ahead_gpus: int
    ahead_gpus_max: int
    ahead_gpus_min: int
    ahead_total: int
    code: str
    draws: int
    figures: Optional[List[Figure]]
    job: Job
    remedies: Optional[List[Remedy]]
    schema: str
    sentence: str
    tried: int
    unit: str


class Why(_Why, total=False):
    at_stake_s: float
    bid: Bid
    command: Optional[List[str]]
    end: Within
    hurried: bool
    may_be_stopped: str
    preempted: Displaced
    remark: str
    rests_on: str
    soon: str
    start: Within
