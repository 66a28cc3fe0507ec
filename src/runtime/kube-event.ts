import { type KubeEvent, type KubeObject, type Stored, timestamp } from "../kube/objects.ts";
import { apiVersionOf, type Resource } from "../kube/resources.ts";

/** The object that an event is about. Default: a Pod. */
export interface ObjectReference {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
}

export function referenceTo<T extends KubeObject>(
  resource: Resource<T>,
  { metadata }: Stored<KubeObject>,
): ObjectReference {
  const { namespace, name, uid } = metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid };
}

export interface EventParts {
  readonly reason: string;
  readonly message: string;
  readonly type: "Normal" | "Warning";
  /** The command that shows the whole message. */
  readonly seeAlso?: string | undefined;
  readonly suffix: string;
  /** Epoch ms. */
  readonly at: number;
}

export interface EventSource {
  readonly component: string;
  readonly reportingComponent: string;
}

// The API server refuses longer messages (events.k8s.io/v1 validation).
const LONGEST_MESSAGE = 1024;

/** Chooses the name here, so that a retry after a lost answer makes no second event. */
export function makeEvent(
  { apiVersion = "v1", kind = "Pod", namespace = "default", name, uid }: ObjectReference,
  { reason, message, seeAlso, type, suffix, at }: EventParts,
  { component, reportingComponent }: EventSource,
): KubeEvent {
  const time = timestamp(at);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name: `${stemOf(name)}.${suffix}` },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type,
    reason,
    message: shortened(message, seeAlso),
    source: { component },
    reportingComponent,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** Returns as many whole parts of a message as an event has room for, and where to read the rest. */
function shortened(message: string, seeAlso: string | undefined): string {
  if (message.length <= LONGEST_MESSAGE) return message;
  const more = seeAlso === undefined ? " …" : ` … (all: ${seeAlso})`;
  const room = message.slice(0, LONGEST_MESSAGE - more.length);
  // At least half of it: a part or a word may itself be longer.
  const end = ["; ", " "].map((between) => room.lastIndexOf(between)).find((at) => at > room.length / 2);
  return `${room.slice(0, end)}${more}`;
}

/** Returns as much of an object's name as an event's name has room for. */
function stemOf(name: string): string {
  return name.slice(0, 200).replace(/[-.]+$/, "");
}
