import { COMMAND_ROOMS } from "./commands.ts";
import { CONTROLLER_ROOMS } from "./controllers.ts";
import type { Room } from "./room.ts";

/** What may import what. A folder without a row may import nothing. */
export const ROOMS: readonly Room[] = [
  { room: "api", purpose: "keys, annotations, schemas of the custom resources", imports: [], pure: true },
  {
    room: "api/{kubernetes,resources}.ts",
    purpose: "types of Kubernetes' objects and resources, passed on",
    imports: ["kube/objects.ts", "kube/resources.ts"],
  },
  { room: "api/json.ts", purpose: "functions of JSON values", imports: ["kube/json.ts"], pure: true },
  { room: "pods", purpose: "functions of pods: proxy, delegate, feedback, forwarding", imports: ["api"], pure: true },
  {
    room: "placement",
    purpose: "which member a pod gets: filters, scores, divisions",
    imports: ["api", "pods"],
    pure: true,
  },
  {
    room: "copies",
    purpose: "a record per kind of object that members get copies of",
    imports: ["api", "pods", "kube/resources.ts"],
    pure: true,
  },
  { room: "certificates", purpose: "issues and checks certificates", imports: [] },
  {
    room: "kube",
    purpose: "[the API client](../src/kube/README.md) and types of objects; knows nothing of Legation",
    imports: ["kube/internal"],
    packages: ["@kubernetes/client-node"],
  },
  { room: "kube/internal", purpose: "what the client is made of", imports: ["kube"], packages: ["undici"] },
  { room: "telemetry", purpose: "logs, metrics, traces, health", imports: [] },
  {
    room: "runtime",
    purpose: "[the frame of any controller](../src/runtime/README.md): reflector, work queue, leader election",
    imports: ["runtime/internal", "kube", "telemetry"],
  },
  { room: "runtime/internal", purpose: "what the frame is made of", imports: ["runtime", "kube"] },
  {
    room: "tunnel",
    purpose: "the hub and its agents: connections to members that the host cannot reach",
    imports: ["runtime", "kube", "telemetry"],
  },
  {
    room: "serving",
    purpose:
      "servers that the host's API server calls: certificates, authentication, reviews of rights, upgraded streams",
    imports: ["api", "certificates", "kube", "runtime", "telemetry"],
  },
  {
    room: "clusters",
    purpose: "members: connections and their tokens, probe, nodes, requests of delegates",
    imports: ["api", "pods", "placement", "kube", "runtime", "telemetry"],
  },
  {
    room: "scheduling",
    purpose:
      "what decides a pod's place and is kept between decisions: rules, divisions, groups, reservations, refusals",
    imports: ["api", "pods", "placement", "copies", "clusters", "runtime", "kube/messages.ts", "kube/resources.ts"],
  },
  {
    room: "kubelet",
    purpose: "the kubelet API of virtual nodes",
    imports: ["api", "pods", "certificates", "clusters", "serving", "kube", "runtime", "telemetry"],
  },
  {
    room: "access",
    purpose: "the aggregated API by which users reach members",
    imports: ["api", "certificates", "clusters", "serving", "tunnel", "kube", "runtime", "telemetry"],
  },
  {
    room: "relay",
    purpose: "carries connections of relayed Services to pods on the host and in members",
    imports: [
      "api",
      "copies",
      "serving/graceful-shutdown.ts",
      "tunnel/control-channel.ts",
      "kube",
      "runtime",
      "telemetry",
    ],
  },
  {
    room: "webhook",
    purpose: "the admission webhook",
    imports: ["api", "pods", "certificates", "serving", "kube", "telemetry", "runtime/clock.ts", "whole"],
    packages: ["fastify"],
  },
  {
    room: "simulation",
    purpose: "places pods in the host's state as it is now, by the controller's own decisions",
    imports: [
      "api",
      "pods",
      "placement",
      "copies",
      "clusters",
      "scheduling",
      "runtime",
      "controllers/delegation/decide.ts",
      "controllers/delegation/decision/view.ts",
      "webhook",
      "whole",
    ],
  },
  ...CONTROLLER_ROOMS,
  ...COMMAND_ROOMS,
];
