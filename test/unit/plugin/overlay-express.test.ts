import { attachGateway } from '../../../src/gateway/index.js'
import {
  createNamesLookupService,
  createOrdinalsLookupService,
  NamesTopicManager,
  OrdinalsTopicManager,
  PROFILES,
  storesOf,
} from '../../../src/plugin/index.js'
import { expectError } from '../../support/gateway/expect-error.js'
import OverlayExpress from '../../support/plugin/overlay-express.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { ask, posted, SILENT, submission, useServers } from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'

// A host of another engine that is wired by hand, with options, and has the gateway on its app.

const { folder } = useServers()
const chain = new FakeChain()
const { deployment } = chain

test('what its engine admits is read at the routes of the gateway, and what is blocked is not', async () => {
  const host = new OverlayExpress('host', '11', 'overlay.test')
  host.configurePort(0)
  await host.configureKnex(`sqlite:${await folder()}`)
  if (host.knex === undefined) throw new Error('it has a database by now')
  const stores = storesOf(host.knex)
  const store = stores.graph
  host.configureTopicManager('tm_names', new NamesTopicManager({ deployment, store }))
  host.configureTopicManager('tm_ordinals', new OrdinalsTopicManager({ store }))
  host.configureLookupServiceWithKnex('ls_names', (knex) => createNamesLookupService(knex, { deployment }))
  host.configureLookupServiceWithKnex('ls_ordinals', createOrdinalsLookupService)
  await host.configureEngine(false)
  attachGateway(host.app, stores, {
    profile: PROFILES.local,
    deployment,
    logger: SILENT,
  })
  // An operator may block before anybody has asked.
  await stores.graph.blocklist.add({ kind: 'name', value: 'zz', reason: 'a reason', since: 1 })
  await host.start()
  try {
    expectError(await ask(host.url, '/svc/names/zz'), { status: 451, code: 'BLOCKED' })
    const [a, ab] = [chain.mint('a'), chain.mint('ab')]
    for (const each of [chain.genesis, a, ab]) {
      const { status } = await ask(host.url, '/submit', submission(beefOf(each), ['tm_names', 'tm_ordinals']))
      expect(status).toBe(200)
    }
    // An engine answers before it has stored.
    await eventually(async () => {
      const origin = await ask(host.url, '/svc/names/origin/ab')
      expect(origin.json).toEqual({ name: 'ab', outpoint: ab.outpoint(2) })
    })
    const content = await ask(host.url, `/content/${ab.outpoint(2)}`)
    expect(content).toMatchObject({ status: 200, headers: { 'content-type': deployment.nameContentType } })
    expect(content.body.toString('utf8')).toBe('ab')
    expect((await ask(host.url, '/svc/names/proof/ab')).status).toBe(200)
    // Before its parsers, so that it reads its own bodies; and before its 404.
    const genuine = await ask(host.url, '/svc/names/origins', posted([a.outpoint(2), a.outpoint(1)]))
    expect(genuine.json).toEqual({ [a.outpoint(2)]: true, [a.outpoint(1)]: false })
    expect((await ask(host.url, '/nothing')).json).toMatchObject({ code: 'ERR_ROUTE_NOT_FOUND' })

    await stores.graph.blocklist.add({ kind: 'name', value: 'ab', reason: 'a reason', since: 1 })
    expectError(await ask(host.url, '/svc/names/ab'), { status: 451, code: 'BLOCKED' })
    const lookup = posted({ service: 'ls_names', query: { name: 'ab' } })
    expect(await ask(host.url, '/lookup', lookup)).toMatchObject({
      status: 451,
      json: { code: 'BLOCKED', status: 'error' },
    })
  } finally {
    await host.stop()
  }
})
