import type { IncomingMessage } from "node:http";
import { ACCESS_GROUP, ACCESS_VERSION } from "../api/access.ts";
import type { ForwardedRequest } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { headerPairs } from "../kube/raw-headers.ts";
import type { Clock } from "../runtime/clock.ts";
import { type PlainAnswer, statusAnswer } from "../runtime/upgrade-answers.ts";
import type { AccessReviews, User } from "../serving/access-reviews.ts";
import { certificateSubject } from "../serving/client-certificate.ts";
import { isIdentityHeader, type RequestHeaders, userOf } from "../serving/request-headers.ts";
import type { Logger } from "../telemetry/logger.ts";
import { memberIdentity } from "./identity.ts";
import type { AccessMember, AccessMembers } from "./members.ts";
import { targetOf } from "./path.ts";

/** A request that may go to a member, as it is sent there but for its body. */
export interface AdmittedRequest {
  readonly member: AccessMember;
  readonly request: Omit<ForwardedRequest, "body" | "signal">;
}

type Method = ForwardedRequest["method"];

// The API server's mapping of methods to verbs (k8s.io/apiserver, pkg/endpoints/request/requestinfo.go).
const VERBS: Readonly<Record<Method, string>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

export interface GateOptions {
  readonly members: Pick<AccessMembers, "find">;
  /** Returns undefined when the host says of no request whom it is from. */
  readonly requestHeaders: () => RequestHeaders | undefined;
  readonly reviews: Pick<AccessReviews, "allows">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Decides about each request: who asks, whether the host lets the user, which member is asked, and as whom. */
export class AccessGate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /**
   * Returns the user of a request. Believes only the host's API server, which shows a certificate of the published authority.
   * Undefined for all others.
   */
  user({ socket, rawHeaders }: Pick<IncomingMessage, "socket" | "rawHeaders">): User | undefined {
    const headers = this.#options.requestHeaders();
    const subject = certificateSubject(socket, this.#options.clock.wall());
    if (headers === undefined || subject === undefined) return undefined;
    const { allowedNames } = headers;
    if (allowedNames.length > 0 && !allowedNames.includes(subject.commonName)) return undefined;
    return userOf(rawHeaders, headers);
  }

  /** Returns the request to send, or the answer of one that is refused. */
  async admit(
    { method = "", url = "", rawHeaders }: Pick<IncomingMessage, "method" | "url" | "rawHeaders">,
    user: User,
  ): Promise<AdmittedRequest | PlainAnswer> {
    const target = targetOf(url);
    if (target.problem !== undefined) return statusAnswer("BadRequest", target.problem);
    if (!isMethod(method)) return statusAnswer("MethodNotAllowed", `${method} is no method of API servers`);
    const { cluster, path } = target;
    const denial = await this.#denial(user, VERBS[method], cluster);
    if (denial !== undefined) return denial;
    const found = this.#options.members.find(cluster);
    if (found.member === undefined) return statusAnswer(found.reason, found.message);
    const { member } = found;
    const identity = memberIdentity(user, member.prefix);
    if ("problem" in identity) {
      return statusAnswer("Forbidden", `user ${user.name} has no access to Cluster ${cluster}: ${identity.problem}`);
    }
    return {
      member,
      request: { method, path, headers: this.#withoutIdentity(rawHeaders), impersonation: identity },
    };
  }

  async #denial(user: User, verb: string, name: string): Promise<PlainAnswer | undefined> {
    const attributes = {
      verb,
      group: ACCESS_GROUP,
      version: ACCESS_VERSION,
      resource: "clusters",
      subresource: "proxy",
      name,
    };
    try {
      if (await this.#options.reviews.allows(user, attributes)) return undefined;
      const needed = `cannot ${verb} resource "clusters/proxy" in API group "${ACCESS_GROUP}" at the cluster scope`;
      return statusAnswer(
        "Forbidden",
        `clusters.${ACCESS_GROUP} "${name}" is forbidden: User "${user.name}" ${needed}`,
      );
    } catch (error) {
      if (!isKubeError(error)) throw error;
      this.#options.log.warn({ err: error, member: name }, "the rights of a user could not be checked");
      return statusAnswer("ServiceUnavailable", `the host did not say whether you may: ${error.detail}`);
    }
  }

  /** Drops the host's own headers, which have other names where an operator chose them. */
  #withoutIdentity(rawHeaders: readonly string[]): string[] {
    const headers = this.#options.requestHeaders();
    return [...headerPairs(rawHeaders)].flatMap(([name, value, spelled]) =>
      headers !== undefined && isIdentityHeader(headers, name) ? [] : [spelled, value],
    );
  }
}

function isMethod(method: string): method is Method {
  return Object.hasOwn(VERBS, method);
}
