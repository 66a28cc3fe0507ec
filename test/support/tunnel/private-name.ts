/**
 * Preloaded into an agent (`node --import`), resolves the name of LEGATION_TEST_PRIVATE_NAME to the address after it, as only
 * machines in a member's network do.
 */
import dns from "node:dns";

const [name, address] = (process.env.LEGATION_TEST_PRIVATE_NAME ?? "").split("=");
const real = dns.lookup;

Reflect.set(dns, "lookup", (hostname: string, ...rest: readonly unknown[]) =>
  Reflect.apply(real, dns, [hostname === name ? address : hostname, ...rest]),
);
