import { createApp } from '../../../../src/server/app.js'
import type { IndexStatus } from '../../../../src/server/store/index-status.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { serving } from '../../../support/server/connections.js'
import { type Answer, ask, SILENT, useServers } from '../../../support/server/test-server.js'

const servers = useServers()

describe('while the index may lack facts', () => {
  /** A host whose index has this status. */
  async function hostThatIs(status: IndexStatus): Promise<(path: string) => Promise<Answer>> {
    const { node } = await servers.start()
    const { config, overlay, graph } = node
    const app = createApp({
      config,
      overlay,
      graph,
      ping: async () => {},
      index: () => status,
      logger: SILENT,
    })
    const { url } = await serving(app)
    return (path) => ask(url, path)
  }

  test('a host that has not heard of its log for a while says so, is not ready, and answers', async () => {
    const asked = await hostThatIs({ state: 'behind', done: 1 })
    expectError(await asked('/health/ready'), { status: 503, code: 'NOT_READY' })
    expect((await asked('/health/ready')).json).toMatchObject({ error: 'the log cannot be read' })
    const health = await asked('/health')
    expect(health.status).toBe(503)
    expect(health.json).toMatchObject({ ready: false, index: { state: 'behind', done: 1 } })
    expect([(await asked('/health/live')).status, (await asked('/svc/names')).status]).toEqual([200, 200])
  })

  test('a host that rebuilds the index answers only health requests', async () => {
    const asked = await hostThatIs({ state: 'rebuilding', done: 0.5 })
    const closed = ['/svc/names', '/content/x', '/openapi.json', '/nowhere', '/health/ready']
    for (const path of closed) expectError(await asked(path), { status: 503, code: 'NOT_READY' })
    expectError(await asked('/lookup'), { status: 503, code: 'NOT_READY', overlay: true })
    expect((await asked('/health/live')).status).toBe(200)
    expect((await asked('/health')).json).toMatchObject({ index: { state: 'rebuilding' } })
  })
})
