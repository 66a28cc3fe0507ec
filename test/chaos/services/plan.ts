/** Deeds with Services, whose members are joined by networks. */
export const SERVICE_DEEDS = [
  "make a Service",
  "change a Service",
  "lead a Service to other pods",
  "make a Service again, headless or not",
  "delete a Service",
  "run a pod of the host behind a Service",
  "join a network, or leave it",
  "delete a copied slice in a member",
  "change a copied slice in a member",
  "relay a Service",
  "relay a Service no more, or again",
  "scale the relay",
] as const;

export type ServiceDeed = (typeof SERVICE_DEEDS)[number];

export function isOnServices(deed: string): deed is ServiceDeed {
  return SERVICE_DEEDS.some((one) => one === deed);
}
