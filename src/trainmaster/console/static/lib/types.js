// Types of the API's answers that the page uses, for `tsc --checkJs`. See docs/reference/openapi.json for all members.

/**
 * @typedef {object} Reason
 * @property {string} type
 * @property {string} message
 *
 * @typedef {object} Attempt
 * @property {number} number
 * @property {string} trainingJobName
 * @property {Record<string, number>} units
 * @property {string | null} instanceType
 * @property {string} outcome
 * @property {string} createdAt
 * @property {string | null} startedAt
 * @property {string | null} endedAt
 * @property {string | null} reason
 *
 * @typedef {object} Scaling
 * @property {string} message
 * @property {{instances: number, speedup: number, perSecond: number | null, measuredAt?: string | null, slowerThan?: number | null, retryAt?: string | null}[]} sizes
 *
 * @typedef {object} Elastic
 * @property {number} minInstances
 * @property {number} maxInstances
 * @property {string} hook
 * @property {number | null} size
 * @property {{from: number, to: number, message: string} | null} resizing
 * @property {Scaling | null} [scaling]
 *
 * @typedef {{priority?: number, minInstances?: number, maxInstances?: number}} JobChange
 *
 * @typedef {object} Job
 * @property {string} jobName
 * @property {string} kind
 * @property {string} jobState
 * @property {number} priority
 * @property {string} share
 * @property {string} entryTime
 * @property {string[]} pools
 * @property {Record<string, number>[]} demand
 * @property {{accelerators: number, acceleratorMemoryGib: number, vcpus: number, memoryGib: number, accelerator: string} | null} resources
 * @property {number | null} instances
 * @property {boolean} preemptible
 * @property {number | null} position
 * @property {number | null} positionAtLeast
 * @property {Reason | null} reason
 * @property {string | null} estimatedStart
 * @property {string | null} estimatedStartLow
 * @property {string | null} estimatedStartHigh
 * @property {{prospect: string, message: string} | null} deadline
 * @property {string | null} expectedEnd
 * @property {string | null} endedAt
 * @property {string | null} submittedBy
 * @property {string | null} failureReason
 * @property {string | null} trainingJobName
 * @property {Attempt[]} attempts
 * @property {Elastic | null} elastic
 *
 * @typedef {object} Change
 * @property {string} at
 * @property {string | null} from
 * @property {string} to
 * @property {string} reason
 * @property {number | null} attempt
 *
 * @typedef {object} Holder
 * @property {string} jobName
 * @property {string} pool
 * @property {number} instances
 * @property {string} expectedEnd
 * @property {boolean} overdue
 * @property {boolean} stopping
 * @property {number} givingBack
 *
 * @typedef {object} Advice
 * @property {string} message
 * @property {number | null} priority
 * @property {string | null} pool
 *
 * @typedef {object} Why
 * @property {Holder[]} inTheWay
 * @property {number} jobsInTheWay
 * @property {{pool: string, instances: number, trainingJobNames: string[], trainingJobs: number}[]} [external]
 * @property {{instances: Record<string, number>, at: string | null} | null} reserved
 * @property {string | null} [rule]
 * @property {Advice[]} advice
 *
 * @typedef {Job & {history: Change[], jobDetails: Record<string, any>, redacted: string[], why: Why | null}} JobDetail
 *
 * @typedef {object} Pool
 * @property {string} name
 * @property {string} instanceType
 * @property {string} kind
 * @property {string} state
 * @property {string | null} endsAt
 * @property {string | null} madeFor
 * @property {number} accelerators
 * @property {number} cap
 * @property {number | null} quota
 * @property {number} used
 * @property {number} stopping
 * @property {number} held
 * @property {number} external
 * @property {number} warm
 * @property {number} free
 * @property {number} waiting
 * @property {boolean} waitingMore
 * @property {ServiceLoad | null} [load]
 *
 * @typedef {object} ServiceLoad
 * @property {number} capacity
 * @property {number} target
 * @property {number} pressure
 * @property {string | null} throttledAt
 * @property {number} external
 * @property {string | null} externalAt
 * @property {number | null} windowSeconds
 *
 * @typedef {object} Interval
 * @property {string} kind
 * @property {string | null} jobName
 * @property {string | null} jobState
 * @property {string | null} share
 * @property {number | null} priority
 * @property {number} units
 * @property {number | null} attempt
 * @property {string | null} outcome
 * @property {string} from
 * @property {string | null} fromLow
 * @property {string | null} fromHigh
 * @property {string | null} until
 * @property {string | null} untilLow
 * @property {string | null} untilHigh
 *
 * @typedef {{name: string, kind: string | null, instanceType: string | null, cap: number | null, draining: boolean, intervals: Interval[], leftOut: number}} SchedulePool
 * @typedef {{at: string, from: string, to: string, pastFrom: string, more: boolean, pools: SchedulePool[]}} Schedule
 *
 * @typedef {{jobs: Job[], nextCursor: string | null}} JobsPage
 * @typedef {JobsPage & {pools: Pool[]}} QueuePage
 *
 * @typedef {object} ShareOfPool
 * @property {string} pool
 * @property {number} used
 *
 * @typedef {object} ShareUse
 * @property {string} name
 * @property {number} running
 * @property {number} waiting
 * @property {ShareOfPool[]} pools
 *
 * @typedef {{shares: ShareUse[], more: boolean}} SharesView
 *
 * @typedef {{type: string, message: string, hint: string | null}} Problem
 * @typedef {{value: any, asOf: string | null, error: Problem | null}} Reading
 * @typedef {{page: string, name: string, query: Record<string, string>}} Route
 */

export {};
