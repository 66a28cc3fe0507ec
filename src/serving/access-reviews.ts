import { z } from "zod";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { AnswerCache } from "./answer-cache.ts";

/** A user of the host, as its API server authenticated it. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The object and verb of a request, as a SubjectAccessReview names them. */
export interface ResourceAttributes {
  readonly verb: string;
  readonly group?: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name: string;
}

const MOST_ANSWERS = 1_000;
export const REVIEW_TIMEOUT_MS = 10_000;

const accessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

/** Asks the host with SubjectAccessReviews what users may do, and keeps answers for a while. */
export class AccessReviews {
  readonly #host: ClusterClient;
  readonly #answers: AnswerCache<boolean>;

  constructor(options: {
    readonly host: ClusterClient;
    readonly clock: Clock;
    readonly allowedLifetimeMs: number;
    readonly deniedLifetimeMs: number;
  }) {
    const { host, clock, allowedLifetimeMs, deniedLifetimeMs } = options;
    this.#host = host;
    this.#answers = new AnswerCache({
      lifetimeMs: (allowed) => (allowed ? allowedLifetimeMs : deniedLifetimeMs),
      most: MOST_ANSWERS,
      clock,
    });
  }

  /** Rejects with KubeError when the host does not answer. */
  allows({ name, groups, uid, extra }: User, resourceAttributes: ResourceAttributes): Promise<boolean> {
    const spec = { user: name, groups, uid, extra, resourceAttributes };
    return this.#answers.of(JSON.stringify(spec), () => this.#review(spec));
  }

  async #review(spec: object): Promise<boolean> {
    const review = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec };
    const answer = await this.#host.raw({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      body: review,
      timeoutMs: REVIEW_TIMEOUT_MS,
    });
    return accessReview.parse(answer).status.allowed;
  }
}
