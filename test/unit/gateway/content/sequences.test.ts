import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { directory, text } from '../../../support/gateway/site.js'
import { livesOn } from '../../../support/graph/lives.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

const server = await useServers().start()
const chain = new FakeChain()
const IMMUTABLE = 'public, max-age=31536000, immutable'

const { submit, life } = livesOn(server, chain)
const at = (step: FakeTransaction | undefined): string => step?.outpoint(0) ?? ''
/** Asks for what is behind an output of a step. */
const asked = (step: FakeTransaction | undefined, rest: string, headers = {}) =>
  server.ask(`/content/${at(step)}${rest}`, { headers })

test('what hangs below a directory follows the directory’s own rule', async () => {
  const file = chain.inscribe(text('a file'))
  await submit(file)
  const map = directory({ 'a.txt': at(file), 'index.html': at(file) }, 'ord-fs/json')
  const [origin] = await life('not a directory yet', [inscriptionScript(map)])
  const tip = await asked(origin, ':-1/a.txt')
  expect(tip.body.toString()).toBe('a file')
  const ofTip = {
    'cache-control': 'no-cache',
    'x-outpoint': at(file),
    'x-origin': at(origin),
    'x-ord-seq': '1',
  }
  expect(tip.headers).toMatchObject(ofTip)
  expect((await asked(origin, ':1/a.txt')).headers['cache-control']).toBe(IMMUTABLE)
  const { status, headers } = await asked(origin, ':-1/')
  const location = `/content/${at(origin)}:-1/index.html`
  expect([status, headers.location, headers['cache-control']]).toEqual([302, location, 'no-cache'])
})

test('the parent of a step is that of the latest inscription with one that counts', async () => {
  const parent = chain.inscribe(text('parent'))
  const coin = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })
  const named = inscriptionScript({ ...text('child'), parent: parseOutpoint(at(parent)) })
  const child = chain.spend({ inputs: [parent, coin], outputs: [p2pkh(1), named] })
  const later = chain.move(child, 1, inscriptionScript(text('later')))
  await submit(child, { with: [parent, coin] })
  await submit(later, { with: [child] })
  const shown = [await asked(later, ':-1'), await asked(later, '')].map(({ headers }) => headers['x-parent'])
  expect(shown).toEqual([at(parent), undefined])
})
