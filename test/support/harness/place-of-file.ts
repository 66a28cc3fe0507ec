/** True for a test file that starts real nodes of its own, and false for one on the shared clusters. */
export function isOnRealNodes(path: string): boolean {
  return path.includes("/test/integration/real-nodes/");
}
