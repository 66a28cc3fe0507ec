/** Returns the processor time that the work takes on this thread, in ms: other load of the machine does not count. */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
