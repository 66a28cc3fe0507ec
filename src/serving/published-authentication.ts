import type { ConfigMap } from "../api/kubernetes.ts";
import { certificatesOf } from "../certificates/bundle.ts";
import { expiresAt } from "../certificates/validity.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type RequestHeaders, requestHeadersOf } from "./request-headers.ts";

// Every API server publishes here how its clients, and it itself as a client, are authenticated.
const PUBLISHED = { namespace: "kube-system", name: "extension-apiserver-authentication" };

/** The authorities by which the host authenticates clients, followed through rotations. */
export class PublishedAuthentication {
  readonly #reflector: Reflector<ConfigMap>;
  readonly #log: Logger;
  #clientAuthority: string | undefined;
  #proxyAuthority: string | undefined;
  #requestHeaders: RequestHeaders | undefined;

  constructor(options: {
    readonly host: ClusterClient;
    readonly clock: Clock;
    readonly log: Logger;
    readonly onChange: () => void;
  }) {
    const { host: client, clock, log, onChange } = options;
    this.#log = log;
    this.#reflector = new Reflector({
      client,
      resource: configMaps,
      namespace: PUBLISHED.namespace,
      fieldSelector: `metadata.name=${PUBLISHED.name}`,
      clock,
      log,
      onEvent: ({ type, object }) => {
        this.#read((type === "deleted" ? undefined : object.data) ?? {});
        onChange();
      },
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#reflector.start();
    await this.#reflector.whenSynced(signal);
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }

  /** Authority of client certificates, the API server's for kubelets among them; PEM. Undefined when the host accepts none. */
  get clientAuthority(): string | undefined {
    return this.#clientAuthority;
  }

  /** Authority of the certificate with which the API server passes on requests to aggregated APIs; PEM. */
  get proxyAuthority(): string | undefined {
    return this.#proxyAuthority;
  }

  /** Returns how the API server says whom such a request is from. Undefined when the host has no aggregation. */
  get requestHeaders(): RequestHeaders | undefined {
    return this.#requestHeaders;
  }

  #read(data: Readonly<Record<string, string>>): void {
    this.#clientAuthority = this.#authority(data, "client-ca-file", this.#clientAuthority);
    this.#proxyAuthority = this.#authority(data, "requestheader-client-ca-file", this.#proxyAuthority);
    this.#requestHeaders = requestHeadersOf(data);
  }

  #authority(data: Readonly<Record<string, string>>, key: string, before: string | undefined): string | undefined {
    const pem = data[key];
    if (pem === undefined || pem.trim() === "") return undefined;
    const certificates = certificatesOf(pem);
    if (certificates.length > 0 && certificates.every((certificate) => expiresAt(certificate) !== undefined))
      return pem;
    this.#log.warn(PUBLISHED, `${key} cannot be read: the authorities before are kept`);
    return before;
  }
}
