import { jsonEqual } from "../api/json.ts";
import { LIMIT_RANGER_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { type Amounts, exceeds, parseAmounts } from "../api/quantity.ts";
import { setByLimitRanger } from "../kube/messages.ts";
import { type MutatedBy, podRequests, type RequestMutation } from "../placement/requests.ts";
import { ShapeMap, shapeOf } from "./pod-shapes.ts";

/** The requests that a member's admission made for the last pod of a shape. */
export interface LearntMutation {
  readonly mutation: RequestMutation;
  /** When it is forgotten; epoch ms. */
  readonly until: number;
}

// A member that is not sent such pods for what it made of them is tried again after this: its admission may have changed.
const MUTATION_KEPT_MS = 10 * 60_000;

/** Requests as members' admission changes them, by the shape of the pod. Each answer to a create renews the entry. */
export class RequestMutations {
  readonly #shapes = new ShapeMap<LearntMutation>();

  /** Notes what the member made of the pod. Reports whether it differs from what was known of its shape. */
  learn(member: string, pod: Stored<Pod>, mutation: RequestMutation | undefined, now: number): boolean {
    if (mutation === undefined && this.#shapes.empty) return false;
    const { spec } = shapeOf(pod);
    if (mutation === undefined) return this.#shapes.delete(member, spec);
    const known = this.#shapes.get(member, spec);
    const isKnown = known !== undefined && now < known.until && jsonEqual(known.mutation, mutation);
    this.#shapes.set(member, spec, { mutation: isKnown ? known.mutation : mutation, until: now + MUTATION_KEPT_MS });
    return !isKnown;
  }

  /** Returns, by member, what was made of pods like this one. Undefined when nothing is known of any pod. */
  of(pod: Stored<Pod>, now: number): ((member: string) => LearntMutation | undefined) | undefined {
    if (this.#shapes.empty) return undefined;
    const { spec } = shapeOf(pod);
    return (member) => {
      const known = this.#shapes.get(member, spec);
      return known !== undefined && now < known.until ? known : undefined;
    };
  }
}

/** Returns the requests of a pod as a member stored it; undefined when they are those that were sent. */
export function requestMutation(sent: Pod, stored: Pod): RequestMutation | undefined {
  const before = podRequests(withoutOverhead(sent));
  const requests = podRequests(stored);
  const changed = [...new Set([...Object.keys(before), ...Object.keys(requests)])].filter((resource) =>
    isOther(before, requests, resource),
  );
  if (changed.length === 0) return undefined;
  const byOverhead = parseAmounts(stored.spec?.overhead);
  const limited = limitedBy(sent, stored);
  const causeOf = (resource: string): MutatedBy => {
    if (limited.has(resource)) return "LimitRange";
    return isOther(before, podRequests(withoutOverhead(stored)), resource) || !Object.hasOwn(byOverhead, resource)
      ? "Admission"
      : "RuntimeClass";
  };
  return { requests, by: Object.fromEntries(changed.sort().map((resource) => [resource, causeOf(resource)])) };
}

/** Returns the resources that LimitRanger surely set by itself: it names them, and no other admission added a container. */
function limitedBy(sent: Pod, stored: Pod): ReadonlySet<string> {
  const text = stored.metadata?.annotations?.[LIMIT_RANGER_ANNOTATION];
  const hasOthers = !jsonEqual(containersOf(sent), containersOf(stored));
  // The host's LimitRanger may have set the proxy's.
  if (text === undefined || text === sent.metadata?.annotations?.[LIMIT_RANGER_ANNOTATION] || hasOthers)
    return new Set();
  return setByLimitRanger(text);
}

function containersOf({ spec }: Pod): readonly string[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => name);
}

function isOther(before: Amounts, after: Amounts, resource: string): boolean {
  const [one = 0, other = 0] = [before[resource], after[resource]];
  return exceeds(one, other) || exceeds(other, one);
}

/** Delegates are sent without the overhead of the host's class. */
function withoutOverhead(pod: Pod): Pod {
  if (pod.spec?.overhead === undefined) return pod;
  const { overhead: _, ...spec } = pod.spec;
  return { ...pod, spec };
}
