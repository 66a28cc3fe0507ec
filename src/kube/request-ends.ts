/** When kube-apiserver has given up a request that it began: after its --request-timeout, a minute by default; ms. */
export const CREATE_ENDS_MS = 60_000;

/** When a cluster that answers has done what an earlier process had sent to it; ms. */
export const IN_FLIGHT_MS = 1_000;
