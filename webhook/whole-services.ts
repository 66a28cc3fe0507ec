import { isJsonObject, type JsonObject, setAt } from "../src/api/json.ts";
import { OVERRIDES_ANNOTATION, PROXY_LABEL, WHOLE_KEY } from "../src/api/keys.ts";
import { mayBeCopied, specOf, WHOLE_LOAD_BALANCER_CLASS } from "../src/api/service-fields.ts";
import type { ReviewedObject } from "./admission-review.ts";
import { annotationProblems } from "./read-annotations.ts";
import { isFinalized, type ReviewedChange } from "./whole.ts";

const IS_BALANCED = "LoadBalancer";

/** Returns why members cannot get the Service. */
export function serviceProblems({ object, oldObject, namespace }: ReviewedChange): string[] {
  const { selector, externalIPs } = specOf(object);
  const isOfThisCluster = !mayBeCopied({ metadata: { ...object.metadata, namespace } });
  return annotationProblems(WHOLE_KEY, [
    isOfThisCluster && "each cluster has its own API server's Service and its own imports; remove the annotation",
    isJsonObject(selector) &&
      selector[PROXY_LABEL] !== undefined &&
      `pods in members lack the label ${PROXY_LABEL}; remove it from spec.selector`,
    Array.isArray(externalIPs) &&
      externalIPs.length > 0 &&
      "a Service takes traffic of others by spec.externalIPs, which no member gives an author; remove the field, or write type: LoadBalancer",
    balancerProblem(specOf(object), oldObject),
  ]);
}

/** Returns why a load balancer of this cluster may serve the Service, beside those of members. */
function balancerProblem(
  { type, loadBalancerClass }: JsonObject,
  oldObject: ReviewedObject | undefined,
): string | undefined {
  if (type !== IS_BALANCED || loadBalancerClass === WHOLE_LOAD_BALANCER_CLASS) return undefined;
  if (typeof loadBalancerClass === "string") {
    const override = `[{"patch": [{"op": "add", "path": "/spec/loadBalancerClass", "value": "${loadBalancerClass}"}]}]`;
    return (
      `a load balancer of this cluster may serve spec.loadBalancerClass ${loadBalancerClass}; leave the field out, and write ` +
      `it for members: annotation ${OVERRIDES_ANNOTATION}: ${override}`
    );
  }
  const before = oldObject === undefined ? {} : specOf(oldObject);
  return before.type === IS_BALANCED && before.loadBalancerClass !== WHOLE_LOAD_BALANCER_CLASS
    ? "a load balancer of this cluster may serve the Service already, and spec.loadBalancerClass, which keeps it away, never " +
        "changes; set spec.type to ClusterIP first, or delete the Service and create it anew"
    : undefined;
}

/** Keeps load balancers of this cluster away from a Service that members' own serve. The API server takes the class with the type alone. */
export function withLoadBalancerClass(service: ReviewedObject): ReviewedObject {
  const { type, loadBalancerClass } = specOf(service);
  if (type !== IS_BALANCED || loadBalancerClass !== undefined) return service;
  return setAt(service, ["spec", "loadBalancerClass"], WHOLE_LOAD_BALANCER_CLASS);
}

/** Returns why the Service cannot be taken back from members: no load balancer of this cluster would ever serve it. */
export function takingBackProblems(service: ReviewedObject): string[] {
  const { type, loadBalancerClass } = specOf(service);
  return annotationProblems(WHOLE_KEY, [
    type === IS_BALANCED &&
      loadBalancerClass === WHOLE_LOAD_BALANCER_CLASS &&
      isFinalized(service) &&
      `spec.loadBalancerClass ${WHOLE_LOAD_BALANCER_CLASS} keeps load balancers of this cluster away, and ` +
        "never changes; set spec.type to ClusterIP first, or delete the Service",
  ]);
}
