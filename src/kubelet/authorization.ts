import { z } from "zod";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { AnswerCache } from "./answer-cache.ts";
import type { RequestAttributes } from "./attributes.ts";
import type { User } from "./authentication.ts";

// The kubelet's defaults (authorization.webhook.cacheAuthorizedTTL and cacheUnauthorizedTTL).
const ALLOWED_LIFETIME_MS = 300_000;
const DENIED_LIFETIME_MS = 30_000;
const MOST_ANSWERS = 1_000;
const REVIEW_TIMEOUT_MS = 10_000;

const accessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

/** Authorizes requests to a virtual node with SubjectAccessReviews on the host. */
export class Authorization {
  readonly #host: ClusterClient;
  readonly #answers: AnswerCache<boolean>;

  constructor({ host, clock }: { readonly host: ClusterClient; readonly clock: Clock }) {
    this.#host = host;
    this.#answers = new AnswerCache({
      lifetimeMs: (allowed) => (allowed ? ALLOWED_LIFETIME_MS : DENIED_LIFETIME_MS),
      most: MOST_ANSWERS,
      clock,
    });
  }

  /** Rejects with KubeError when the host does not answer. */
  async allows(user: User, node: string, { verb, subresources }: RequestAttributes): Promise<boolean> {
    for (const subresource of subresources) {
      const resourceAttributes = { verb, version: "v1", resource: "nodes", subresource, name: node };
      const { name, groups, uid, extra } = user;
      const spec = { user: name, groups, uid, extra, resourceAttributes };
      if (await this.#answers.of(JSON.stringify(spec), () => this.#review(spec))) return true;
    }
    return false;
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
