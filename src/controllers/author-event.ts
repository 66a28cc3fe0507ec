import { type KubeEvent, type KubeObject, type Stored, timestamp } from "../api/kubernetes.ts";
import { apiVersionOf, type Resource } from "../kube/resources.ts";

/** The object that an event is about; without a kind, a Pod. */
export interface About {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
}

/** An object of this resource, as an event names it. */
export function aboutObject<T extends KubeObject>(resource: Resource<T>, { metadata }: Stored<KubeObject>): About {
  const { namespace, name, uid } = metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid };
}

/** What an event says. */
export interface EventParts {
  readonly reason: string;
  readonly message: string;
  readonly type: "Normal" | "Warning";
  /** What shows the whole message, where something does. */
  readonly all?: string | undefined;
  /** End of the event's name. */
  readonly suffix: string;
  /** Epoch ms. */
  readonly at: number;
}

// The API server refuses longer ones (events.k8s.io/v1 validation).
const LONGEST_MESSAGE = 1024;

/** An event for the author of an object. Its name is chosen here, and not by the API server: one whose answer was lost is not made twice. */
export function authorEvent(
  { apiVersion = "v1", kind = "Pod", namespace = "default", name, uid }: About,
  { reason, message, all, type, suffix, at }: EventParts,
): KubeEvent {
  const time = timestamp(at);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name: `${stemOf(name)}.${suffix}` },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type,
    reason,
    message: shortened(message, all),
    source: { component: "legation" },
    reportingComponent: "legation.dev/controller",
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** As many whole parts of a message as an event has room for, and where the rest is to be read. */
function shortened(message: string, all: string | undefined): string {
  if (message.length <= LONGEST_MESSAGE) return message;
  const more = all === undefined ? " …" : ` … (all: ${all})`;
  const room = message.slice(0, LONGEST_MESSAGE - more.length);
  // Half of it at least: a part or a word may itself be longer.
  const end = ["; ", " "].map((between) => room.lastIndexOf(between)).find((at) => at > room.length / 2);
  return `${room.slice(0, end)}${more}`;
}

/** As much of an object's name as an event's has room for. */
function stemOf(name: string): string {
  return name.slice(0, 200).replace(/[-.]+$/, "");
}
