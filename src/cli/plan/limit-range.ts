import type { Container, PodSpec } from "../../api/kubernetes.ts";
import { type Amounts, exceeds, formatAmounts, parseAmounts, textsOf, writeQuantity } from "../../api/quantity.ts";
import { containerRequests, podLevelRequests, podRequests } from "../../placement/requests.ts";
import { podLimits } from "./pod-limits.ts";
import type { LimitRangeRule, LimitRule } from "./rules.ts";

/** The spec with what a LimitRange gives to containers that do not say it themselves (plugin LimitRanger). */
export function withDefaults(spec: PodSpec, ranges: readonly LimitRangeRule[]): PodSpec {
  const items = itemsOf(ranges, "Container");
  if (items.length === 0) return spec;
  const filled = (container: Container): Container => {
    let { limits = {}, requests = {} } = container.resources ?? {};
    // Defaulting comes first: what is limited and not requested is requested as it is limited.
    requests = { ...limits, ...requests };
    for (const { default: defaults = {}, defaultRequest = {} } of items) {
      limits = { ...textsOf(defaults), ...limits };
      requests = { ...textsOf(defaultRequest), ...requests };
    }
    return { ...container, resources: { ...container.resources, limits, requests } };
  };
  const { containers, initContainers, resources } = spec;
  return {
    ...spec,
    // So does that of the pod as a whole, by what its containers say themselves.
    ...(resources === undefined
      ? {}
      : { resources: { ...resources, requests: formatAmounts(podLevelRequests(spec)) } }),
    containers: containers.map(filled),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(filled) }),
  };
}

/** Why a LimitRange does not let the pod in, in LimitRanger's words; undefined: all do. */
export function limitRefusal(spec: PodSpec, ranges: readonly LimitRangeRule[]): string | undefined {
  const { containers, initContainers = [] } = spec;
  // What runs it counts in no LimitRange.
  const { overhead: _, ...own } = spec;
  const whole = { requests: podRequests({ spec: own }), limits: podLimits({ spec: own }) };
  const problems = [
    ...itemsOf(ranges, "Container").flatMap((item) =>
      [...containers, ...initContainers].flatMap((container) => broken(item, amountsOf(container))),
    ),
    ...itemsOf(ranges, "Pod").flatMap((item) => broken(item, whole)),
  ];
  const [first, ...rest] = new Set(problems);
  return rest.length === 0 ? first : `[${[first, ...rest].join(", ")}]`;
}

interface Stated {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

function itemsOf(ranges: readonly LimitRangeRule[], type: string): LimitRule[] {
  return ranges.flatMap(({ spec }) => spec?.limits ?? []).filter((item) => item.type === type);
}

function amountsOf(container: Container): Stated {
  return { limits: parseAmounts(container.resources?.limits), requests: containerRequests(container) };
}

function broken({ type, min, max, maxLimitRequestRatio }: LimitRule, { requests, limits }: Stated): string[] {
  const problems: string[] = [];
  for (const [name, text] of Object.entries(min ?? {})) {
    const least = parseAmounts({ least: text }).least ?? 0;
    const what = `minimum ${name} usage per ${type} is ${text}`;
    const request = requests[name];
    if (request === undefined) problems.push(`${what}.  No request is specified`);
    else if (exceeds(least, request)) problems.push(`${what}, but request is ${writeQuantity(name, request)}`);
    else if (exceeds(least, limits[name] ?? least))
      problems.push(`${what}, but limit is ${writeQuantity(name, limits[name] ?? 0)}`);
  }
  for (const [name, text] of Object.entries(max ?? {})) {
    const most = parseAmounts({ most: text }).most ?? 0;
    const what = `maximum ${name} usage per ${type} is ${text}`;
    const limit = limits[name];
    if (limit === undefined) problems.push(`${what}.  No limit is specified`);
    else if (exceeds(limit, most)) problems.push(`${what}, but limit is ${writeQuantity(name, limit)}`);
    else if (exceeds(requests[name] ?? 0, most))
      problems.push(`${what}, but request is ${writeQuantity(name, requests[name] ?? 0)}`);
  }
  for (const [name, text] of Object.entries(maxLimitRequestRatio ?? {})) {
    const most = parseAmounts({ most: text }).most ?? 0;
    const what = `${name} max limit to request ratio per ${type} is ${text}`;
    const [request = 0, limit = 0] = [requests[name], limits[name]];
    if (request === 0) problems.push(`${what}, but no request is specified or request is 0`);
    else if (limit === 0) problems.push(`${what}, but no limit is specified or limit is 0`);
    else if (exceeds(limit / request, most))
      problems.push(`${what}, but provided ratio is ${(limit / request).toFixed(6)}`);
  }
  return problems;
}
