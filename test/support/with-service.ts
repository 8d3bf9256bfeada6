/** A group of tests with a server of its own; where the machine lacks programs of it they are skipped, and their name says so. */
export function describeWithService<Server extends { stop(): Promise<void> }>(
  { name, missing, start }: { name: string; missing: string[]; start: () => Promise<Server> },
  tests: (server: () => Server) => void,
): void {
  let started: Server | undefined
  const server = (): Server => {
    if (started === undefined) throw new Error('the server was not started')
    return started
  }
  if (missing.length > 0) {
    describe.skip(`${name} (there is no ${missing.join(', no ')} here)`, () => tests(server))
    return
  }
  describe(name, () => {
    beforeAll(async () => {
      started = await start()
    })
    tests(server)
    // After whatever the tests have on it.
    afterAll(async () => {
      await started?.stop()
    })
  })
}
