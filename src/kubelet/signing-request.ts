import { createHash } from "node:crypto";
import type { CertificateSigningRequest, Stored } from "../api/kubernetes.ts";
import { type Certificate, type CertificateRequest, requestServing } from "../certificates/issue.ts";
import { checkPair } from "../certificates/pair.ts";
import type { ClusterClient } from "../kube/client.ts";
import { ignoring, isKubeError } from "../kube/errors.ts";
import { certificateSigningRequests } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface SigningRequestOptions {
  readonly host: ClusterClient;
  readonly signer: string;
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

interface Asked extends CertificateRequest {
  readonly name: string;
}

// The signer kubernetes.io/kubelet-serving requires this form (kubernetes.io/docs/reference/access-authn-authz/
// certificate-signing-requests). No virtual node has this name: theirs are legation-CLUSTER.
const SUBJECT = { commonName: "system:node:legation", organization: "system:nodes" };
const USAGES = ["digital signature", "key encipherment", "server auth"];
// Pause after a denial, since the next request would be denied as well.
const REFUSED_FOR_MS = 60 * 60_000;
const APPROVE_AGAIN_MS = 60_000;

/** Requests serving certificates from a signer of the host. The private key never leaves this process. */
export class SigningRequest {
  readonly #options: SigningRequestOptions;
  #asked: Asked | undefined;
  #notBefore = 0;
  #triedApproval: { readonly name: string; readonly at: number } | undefined;

  constructor(options: SigningRequestOptions) {
    this.#options = options;
  }

  async next(): Promise<Certificate | undefined> {
    const { host, clock, log, signer } = this.#options;
    if (clock.now() < this.#notBefore) return undefined;
    this.#asked ??= await this.#prepare();
    const { name, key } = this.#asked;
    const found = await host.find(certificateSigningRequests, { name });
    if (found === undefined) {
      await this.#ask(this.#asked);
      await this.#tryApproval(name);
      return undefined;
    }
    const { certificate, conditions = [] } = found.status ?? {};
    const refusal = conditions.find(({ type }) => type === "Denied" || type === "Failed");
    if (refusal !== undefined) {
      const why = [refusal.reason, refusal.message].filter(Boolean).join(": ");
      log.warn(
        { request: name, signer },
        `CertificateSigningRequest ${name}: ${refusal.type}: ${why}: asked for again in an hour`,
      );
      this.#asked = undefined;
      this.#notBefore = clock.now() + REFUSED_FOR_MS;
      return undefined;
    }
    if (certificate === undefined || certificate === "") {
      // An earlier call was cut before the approval, or the right to approve came later.
      if (!conditions.some(({ type }) => type === "Approved")) await this.#tryApproval(name);
      return undefined;
    }
    const cert = Buffer.from(certificate, "base64").toString("utf8");
    this.#asked = undefined;
    // Throws when the certificate is not for this key.
    checkPair({ cert, key });
    return { cert, key };
  }

  async #prepare(): Promise<Asked> {
    const asked = await requestServing(SUBJECT, this.#options.hosts);
    // The name derives from the content, so a request whose response was lost is found again.
    const digest = createHash("sha256").update(asked.request).digest("hex");
    return { ...asked, name: `legation-kubelet-${digest.slice(0, 16)}` };
  }

  async #ask({ name, request }: Asked): Promise<void> {
    const { host, signer } = this.#options;
    const spec = { signerName: signer, usages: USAGES, request: Buffer.from(request).toString("base64") };
    const object = {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name },
      spec,
    };
    await ignoring(host.create(certificateSigningRequests, object), "AlreadyExists");
  }

  /** Logs once per request that an administrator must approve it. */
  async #tryApproval(name: string): Promise<void> {
    const { clock, log, signer } = this.#options;
    if (this.#triedApproval?.name === name && clock.now() < this.#triedApproval.at + APPROVE_AGAIN_MS) return;
    const isFirst = this.#triedApproval?.name !== name;
    this.#triedApproval = { name, at: clock.now() };
    try {
      await this.#approve(name);
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) {
        this.#triedApproval = undefined;
        throw error;
      }
      if (!isFirst) return;
      log.warn(
        { request: name, signer },
        `the kubelet API's certificate waits for \`kubectl certificate approve ${name}\``,
      );
    }
  }

  /** Approves the request, which works only if the operator granted this account `approve` on the signer. */
  async #approve(name: string): Promise<Stored<CertificateSigningRequest>> {
    const approved = {
      type: "Approved",
      status: "True",
      reason: "ServingCertificateOfVirtualNodes",
      message: "Approved by the Legation controller that asked for it.",
    };
    const body = { status: { conditions: [approved] } };
    const options = { subresource: "approval" };
    return await this.#options.host.patch(certificateSigningRequests, { name }, { type: "merge", body }, options);
  }
}
