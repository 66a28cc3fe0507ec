import type { Write } from "../write-gate/write-gate.ts";
import {
  endsByItself,
  findsNoMember,
  isChanged,
  isDeleted,
  isEvicted,
  isForced,
  isLost,
  isMadeAnew,
  isRefused,
  type Life,
  leavesItsDelegate,
  moves,
  NAME,
} from "./lives.ts";

/** A write in a pod's life. */
export interface Place {
  readonly where: "host" | "member";
  readonly method: "POST" | "PATCH" | "DELETE";
  /** Path after `/api/v1/namespaces` and the test's namespace. */
  readonly path: string;
  readonly body?: RegExp;
}

/** Writes of a life, in any order, at each of which something happens. */
export interface Point {
  readonly write: string;
  readonly of: Life;
  readonly at: readonly Place[];
  /** Duration after which the delegate ends, such as `5s`; ended too early, the write would not come. */
  readonly endsAfter?: string;
  /** Runs alone: it changes the cluster for all tests. */
  readonly once?: true;
}

const proxy = `/pods/${NAME}`;
const delegate = { where: "member", method: "PATCH", path: proxy } as const;

function status(body: RegExp): readonly Place[] {
  return [{ where: "host", method: "PATCH", path: `${proxy}/status`, body }];
}

const finalizer: readonly Place[] = [{ where: "host", method: "PATCH", path: proxy }];
const withdrawal: readonly Place[] = [{ where: "member", method: "DELETE", path: proxy }];
const creation: Place = { where: "member", method: "POST", path: "/pods" };

/** Writes that the delegation controller does for a pod that does not overflow. */
export const points: readonly Point[] = [
  { write: "its namespace is created", of: endsByItself, at: [{ where: "member", method: "POST", path: "" }] },
  { write: "its delegate is created", of: endsByItself, at: [creation] },
  { write: "it is bound", of: endsByItself, at: [{ where: "host", method: "POST", path: `${proxy}/binding` }] },
  { write: "it is told to run", of: endsByItself, at: status(/"phase":"Running"/), endsAfter: "5s" },
  { write: "it is told to have ended", of: endsByItself, at: status(/"phase":"Succeeded"/) },
  { write: "its delegate is deleted", of: endsByItself, at: withdrawal },
  { write: "its finalizer is removed", of: endsByItself, at: finalizer },
  { write: "its delegate is deleted", of: isDeleted, at: withdrawal },
  { write: "its last status is told", of: isDeleted, at: status(/"phase":"Failed"/) },
  { write: "it is deleted with grace 0", of: isDeleted, at: [{ where: "host", method: "DELETE", path: proxy }] },
  { write: "its finalizer is removed", of: isDeleted, at: finalizer },
  { write: "its finalizer is removed", of: isForced, at: finalizer },
  { write: "its delegate is deleted", of: isForced, at: withdrawal },
  { write: "it is told to wait", of: findsNoMember, at: status(/"PodScheduled"/) },
  { write: "its waiting is an event", of: findsNoMember, at: [{ where: "host", method: "POST", path: "/events" }] },
  {
    write: "its first delegate is deleted",
    of: moves,
    at: withdrawal,
    once: true,
  },
  {
    write: "the refusal is an event",
    of: isRefused,
    at: [{ where: "host", method: "POST", path: "/events", body: /NotTakenByMember/ }],
  },
  {
    write: "its next delegate is made and recorded",
    of: isMadeAnew,
    at: [
      creation,
      { where: "host", method: "PATCH", path: proxy, body: /legation.dev\/delegate-uid/ },
      { ...delegate, body: /"kwok.test\/outcome":"running"/ },
    ],
  },
  {
    write: "each of its changes is forwarded",
    of: isChanged,
    at: [
      { ...delegate, path: `${proxy}/status`, body: /example.com\/ready/ },
      { ...delegate, path: `${proxy}/resize` },
      { ...delegate, path: `${proxy}/ephemeralcontainers` },
      { ...delegate, body: /"changed":"yes"/ },
    ],
  },
  { write: "its loss is told", of: isLost, at: status(/DisruptionTarget/) },
  {
    write: "it is deleted, too",
    of: isEvicted,
    at: [{ where: "host", method: "DELETE", path: "/pods/web-0" }],
  },
  { write: "its delegate is swept", of: leavesItsDelegate, at: withdrawal },
];

/** Reports whether the write creates the pod's namespace in a member. */
export function isNamespace({ path }: Place): boolean {
  return path === "";
}

/** Reports whether a request is this write in a namespace. */
export function isAt(place: Place, namespace: string): (write: Write) => boolean {
  const { method, path, body = /^/ } = place;
  const collection = "/api/v1/namespaces";
  const whole = isNamespace(place) ? collection : `${collection}/${namespace}${path}`;
  return (write) =>
    write.method === method &&
    write.path === whole &&
    body.test(write.body) &&
    (!isNamespace(place) || write.body.includes(`"${namespace}"`));
}
