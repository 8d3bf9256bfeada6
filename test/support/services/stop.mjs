/** Runs once after all tests. */
export default async function stopServers() {
  await globalThis.stopTestServers?.()
}
