import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { keptLog } from '../../../support/gateway/faults.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
} from '../../../support/protocol/fake-chain.js'
import { type Answer, ask, submission, treeOf, useServers } from '../../../support/server/test-server.js'

// Through the whole service: what the settings refuse leaves no trace but a line in the log.

const LIMIT = 1000
const servers = useServers()
const chain = new FakeChain()
const { logger, records } = keptLog()
const settings = { MAX_CONTENT_BYTES: String(LIMIT), CONTENT_TYPES: 'text/plain,image/*' }
const server = await servers.start({ ...treeOf(chain.deployment), ...settings }, { logger })
const { url } = server

const submit = (subject: FakeTransaction, topics = ['tm_ordinals'], ancestors: FakeTransaction[] = []) =>
  ask(url, '/submit', submission(beefOf(subject, { with: ancestors }), topics))
const contentOf = (transaction: FakeTransaction, vout = 0): Promise<Answer> =>
  ask(url, `/content/${transaction.outpoint(vout)}`)
const refusals = (): unknown[] => records.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal]))

/** How often `tm_ordinals` says that it refused something for this reason. */
async function counted(code: string): Promise<number> {
  const { refused } = (await ask(url, '/health', {})).json as {
    refused: Record<string, Record<string, number>>
  }
  return refused.tm_ordinals?.[code] ?? 0
}

beforeEach(() => void records.splice(0))

test.each([
  ['of too many bytes', 'text/plain', LIMIT + 1, 'CONTENT_TOO_LARGE'],
  ['of a type that is not taken', 'text/html', 1, 'CONTENT_TYPE_NOT_ALLOWED'],
  ['of two types, one of which is', 'image/png,text/html', 1, 'CONTENT_TYPE_NOT_ALLOWED'],
])('content %s is not admitted, the log says why, and the next is', async (_, contentType, length, code) => {
  const before = server.rows()
  const countBefore = await counted(code)
  const refused = chain.inscribe({ contentType, body: new Uint8Array(length) })
  for (let again = 0; again < 2; again++) {
    const answer = await submit(refused)
    expect(answer.status).toBe(200)
    expect(answer.json).toMatchObject({ tm_ordinals: { outputsToAdmit: [] } })
  }
  const after = server.rows()
  for (const table of ['admissions', 'outputs', 'found']) expect(after[table]).toEqual(before[table])
  expect((await contentOf(refused)).status).toBe(404)
  const message = expect.stringContaining('output 0 ')
  const refusal = { topic: 'tm_ordinals', txid: refused.txid, code, message }
  expect([refusals(), (await counted(code)) - countBefore]).toEqual([[refusal, refusal], 2])

  const good = chain.inscribe({ contentType: 'text/plain; charset=utf-8', body: new Uint8Array(LIMIT) })
  expect((await submit(good)).json).toMatchObject({ tm_ordinals: { outputsToAdmit: [0] } })
  expect((await contentOf(good)).body).toHaveLength(LIMIT)
})

test('of one transaction the outputs that are taken are served, and the others are not found', async () => {
  const outputs = ['image/png', 'text/html', 'image/gif'].map((contentType) =>
    inscriptionScript({ contentType, body: utf8(contentType) }),
  )
  const subject = chain.spend({ outputs })
  expect((await submit(subject)).json).toMatchObject({ tm_ordinals: { outputsToAdmit: [0, 2] } })
  expect((await contentOf(subject, 0)).body.toString()).toBe('image/png')
  expect((await contentOf(subject, 1)).status).toBe(404)
  expect((await contentOf(subject, 2)).body.toString()).toBe('image/gif')
  const query = { service: 'ls_ordinals', query: { outpoint: subject.outpoint(1) } }
  const found = await ask(url, '/lookup', { method: 'POST', body: JSON.stringify(query) })
  expect(found.json).toEqual({ type: 'output-list', outputs: [] })
})

test('names are mined whatever the types: the tree is another topic', async () => {
  await submit(chain.genesis, ['tm_names'])
  const mint = chain.mint('a')
  expect((await submit(mint, ['tm_names', 'tm_ordinals'])).json).toMatchObject({
    tm_names: { outputsToAdmit: [0, 1, 2] },
    tm_ordinals: { outputsToAdmit: [] },
  })
  expect((await ask(url, '/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: mint.outpoint(2) })
  expect((await contentOf(mint, 2)).status).toBe(404)
})

test('the topic’s documentation says what this host takes', async () => {
  const { body } = await ask(url, '/getDocumentationForTopicManager?manager=tm_ordinals')
  expect(body.toString()).toContain('at most 1000 bytes')
  expect(body.toString()).toContain('`text/plain`, `image/*`')
})
