import type { Cluster } from "../../../src/api/cluster.ts";
import { HOST_LABEL, OWNER_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeObject, ObjectKey, Stored } from "../../../src/api/kubernetes.ts";
import { Member } from "../../../src/clusters/member.ts";
import type { MemberEvents } from "../../../src/clusters/member-options.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import type { KubeError, KubeErrorCode } from "../../../src/kube/errors.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf, listing, writing } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { cluster as clusterNamed } from "../../support/builders/member.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

export const KEY = "default/web" as ObjectKey;

export const delegate: Stored<KubeObject> = {
  metadata: {
    namespace: "default",
    name: "web",
    uid: "d",
    resourceVersion: "5",
    labels: { [HOST_LABEL]: "host-id" },
    annotations: { [OWNER_ANNOTATION]: "p" },
  },
};

/** The cluster that answers at the member's address. */
export interface Server {
  /** uid of its kube-system namespace, or why it is not told. */
  uid: string | KubeErrorCode;
  items: readonly object[];
  up: boolean;
}

export function failed(code: KubeErrorCode): KubeError {
  return kubeError(code, `answer ${code}`, { verb: "get", resource: "x" });
}

export function cluster(uid?: string): Stored<Cluster> {
  const annotations = uid === undefined ? {} : { "legation.dev/member-uid": uid };
  return clusterNamed("west", { metadata: { annotations }, spec: { credentialsSecret: { name: "member-west" } } });
}

/** A member whose cluster may be another one from some time on. */
export class ChangingMember {
  readonly clock: FakeClock = new FakeClock();
  server: Server = { uid: "uid-of-west", items: [delegate], up: true };
  /** Pods of which its member has told. */
  told: string[] = [];
  /** How often its identity was asked for. */
  asked = 0;
  /** How often its pods were listed. */
  lists = 0;
  readonly watches: PromiseWithResolvers<void>[] = [];

  async started(recorded?: string): Promise<Member> {
    const events = new Events<MemberEvents<Member>>();
    events.on("delegate", (_member, key) => this.told.push(key));
    const member = new Member({
      cluster: cluster(recorded),
      client: this.#client(),
      hostId: "host-id",
      events,
      clock: this.clock,
      log: createLogger({ level: "silent" }),
    });
    member.start();
    await this.clock.advance(1_000);
    return member;
  }

  #answering(): void {
    if (!this.server.up) throw failed("NotSent");
  }

  #client(): ClusterClient {
    return fakeClient({
      raw: async ({ path }) => {
        this.#answering();
        return path === "/version" ? { gitVersion: "v1.36.0" } : "ok";
      },
      find: async <T extends KubeObject>(_resource: Resource<T>) => {
        this.#answering();
        this.asked += 1;
        if (this.server.uid === "Forbidden" || this.server.uid === "ServerError") throw failed(this.server.uid);
        return answerOf<T>({ metadata: { name: "kube-system", uid: this.server.uid } });
      },
      list: listing((plural) => {
        this.#answering();
        if (plural === "pods") this.lists += 1;
        return plural === "pods" ? this.server.items : [];
      }, "5"),
      watch: <T extends KubeObject>(_resource: Resource<T>, { onOpen, signal }: WatchOptions) =>
        this.#watch<T>({ onOpen, signal }),
      ...writing(({ body }) => body),
    });
  }

  async *#watch<T extends KubeObject>({
    onOpen,
    signal,
  }: Pick<WatchOptions, "onOpen" | "signal">): AsyncGenerator<WatchEvent<T>> {
    this.#answering();
    onOpen?.();
    const ends = Promise.withResolvers<void>();
    this.watches.push(ends);
    signal.addEventListener("abort", () => ends.reject(signal.reason));
    await ends.promise;
    yield* [];
  }
}
