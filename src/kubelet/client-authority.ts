import type { ConfigMap } from "../api/kubernetes.ts";
import { certificatesOf } from "../certificates/bundle.ts";
import { expiresAt } from "../certificates/validity.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";

// Every API server publishes its client CA here. The CA also signs the certificate with which it calls kubelets.
const PUBLISHED = { namespace: "kube-system", name: "extension-apiserver-authentication" };
const KEY = "client-ca-file";

/** The host's client CA, followed through rotations. */
export class ClientAuthority {
  readonly #reflector: Reflector<ConfigMap>;
  readonly #log: Logger;
  #pem: string | undefined;

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
        this.#read(type === "deleted" ? undefined : object.data?.[KEY]);
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

  /** Returns undefined when the host accepts no client certificates. */
  get pem(): string | undefined {
    return this.#pem;
  }

  #read(pem: string | undefined): void {
    if (pem === undefined || pem.trim() === "") {
      this.#pem = undefined;
      return;
    }
    const certificates = certificatesOf(pem);
    if (certificates.length > 0 && certificates.every((certificate) => expiresAt(certificate) !== undefined)) {
      this.#pem = pem;
      return;
    }
    this.#log.warn(PUBLISHED, `${KEY} cannot be read: the authorities before are kept`);
  }
}
