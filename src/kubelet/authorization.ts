import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { AccessReviews, type User } from "../serving/access-reviews.ts";
import type { RequestAttributes } from "./attributes.ts";

// The kubelet's defaults (authorization.webhook.cacheAuthorizedTTL and cacheUnauthorizedTTL).
const ALLOWED_LIFETIME_MS = 300_000;
const DENIED_LIFETIME_MS = 30_000;

/** Authorizes requests to a virtual node with SubjectAccessReviews on the host. */
export class Authorization {
  readonly #reviews: AccessReviews;

  constructor({ host, clock }: { readonly host: ClusterClient; readonly clock: Clock }) {
    this.#reviews = new AccessReviews({
      host,
      clock,
      allowedLifetimeMs: ALLOWED_LIFETIME_MS,
      deniedLifetimeMs: DENIED_LIFETIME_MS,
    });
  }

  /** Rejects with KubeError when the host does not answer. */
  async allows(user: User, node: string, { verb, subresources }: RequestAttributes): Promise<boolean> {
    for (const subresource of subresources) {
      if (await this.#reviews.allows(user, { verb, version: "v1", resource: "nodes", subresource, name: node }))
        return true;
    }
    return false;
  }
}
