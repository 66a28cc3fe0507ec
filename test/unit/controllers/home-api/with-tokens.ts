import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { HomeApiController } from "../../../../src/controllers/home-api/controller.ts";
import { RefusedWrites } from "../../../../src/controllers/refused-writes.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { type HostIdentity, toDelegate } from "../../../../src/pods/delegate.ts";
import type { Clock } from "../../../../src/runtime/clock.ts";
import type { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { proxyWrites } from "../../../../src/scheduling/memories.ts";
import type { Logger } from "../../../../src/telemetry/logger.ts";
import { cluster, delegates, member } from "../../../support/builders/member.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";
import { type RecordedEvent, recorderTo } from "../recorder.ts";

/** A pod that mounts a token of the host, and its delegate in `west`. */
export function podWithTokens(host: HostIdentity): { readonly proxy: Stored<Pod>; readonly delegate: Stored<Pod> } {
  const projected = { sources: [{ serviceAccountToken: { path: "token" } }] };
  const proxy = proxyPod({ spec: { nodeName: "legation-west", volumes: [{ name: "kube-api-access-1", projected }] } });
  const access = { mode: "host", address: { host: "10.0.0.1", port: "443" } } as const;
  const { metadata, spec } = toDelegate(proxy, host, access);
  const delegate = pod({ uid: "delegate-uid", metadata: { ...metadata, name: "web-0" }, ...(spec && { spec }) });
  return { proxy, delegate };
}

/** `west`, as far as tokens need it, with this one delegate. */
export function memberWith(delegate: Stored<Pod>, client: ClusterClient): Member {
  return member("west", client, {
    probed: { reachable: true },
    delegates: delegates({ list: () => [delegate], get: () => delegate }),
  });
}

/** Parts of the controller that a test chooses. */
interface HomeApiParts {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly events: Events<ControllerEvents>;
  readonly west: Member;
  readonly proxy: Stored<Pod>;
  readonly tell: (event: RecordedEvent) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The controller that gives `west` tokens for the proxy, and has the address and the authority of the host from its Cluster. */
export function homeApiOf({ west, proxy, tell, ...parts }: HomeApiParts): HomeApiController {
  const authority = Buffer.from("-----BEGIN CERTIFICATE-----").toString("base64");
  const homeAPI = { server: "https://10.0.0.1:443", certificateAuthorityData: authority };
  const recorder = recorderTo(tell, parts.clock);
  const refusedWrites = new RefusedWrites({
    writes: proxyWrites(parts.clock),
    recorder,
    events: parts.events,
  });
  const proxies = new Store<Pod>();
  proxies.set(proxy);
  return new HomeApiController({
    ...parts,
    registry: {
      members: () => [west],
      member: () => west,
      holders: () => [west],
      problem: () => undefined,
      cluster: () => cluster("west", { spec: { homeAPI } }),
    },
    recorder,
    refusedWrites,
    server: undefined,
    agentAddress: () => undefined,
    proxies,
    modeOf: () => undefined,
  });
}
