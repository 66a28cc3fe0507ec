/** Deeds of authors and operators on queues, where Kueue runs. */
export const QUEUE_DEEDS = [
  "queue a Job",
  "queue an urgent Job",
  "queue a whole Job",
  "queue an urgent whole Job",
  "queue a pod",
  "delete a queued Job",
  "stop a queued workload",
  "start what was stopped",
  "hold a queue",
  "change a queue's share",
] as const;

export type QueueDeed = (typeof QUEUE_DEEDS)[number];

export const QUEUE_FAULTS = ["Kueue killed"] as const;

export type QueueFault = (typeof QUEUE_FAULTS)[number];

export function isOnQueues(deed: string): deed is QueueDeed {
  return QUEUE_DEEDS.some((one) => one === deed);
}
