import { encodeHeader } from '../../../backend/src/protocol/block-header.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import {
  beefOf,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
} from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const browser = useBrowser()
const { server, chain, port } = await hostedServer(servers)
const TIME = 1_700_000_000
await server.node.graph.headers.replaceFrom({
  ...{ height: 800_000, tip: undefined },
  headers: encodeHeader({
    ...{
      version: 1,
      previous: '00'.repeat(32),
      root: '11'.repeat(32),
      time: TIME,
      bits: 0x207fffff,
      nonce: 1,
    },
  }),
})

const inscribed = async (
  inscription: Parameters<typeof inscriptionScript>[0],
  coin: { transaction: FakeTransaction; vout: number },
): Promise<FakeTransaction> => {
  const outputs = [{ satoshis: 1, lockingScript: inscriptionScript(inscription) }]
  const transaction = chain.spend({ inputs: [coin], outputs })
  const beef = beefOf(transaction, { with: [coin.transaction] })
  await server.take(beef, ['tm_ordinals'])
  return transaction
}
const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: Uint8Array.of(0x51) }] })
const DOT =
  '<svg xmlns="http://www.w3.org/2000/svg" width="12" height="12"><circle cx="6" cy="6" r="6"/></svg>'
const suffix = mapTail({ title: 'a dot' })
const dot = await inscribed(
  { contentType: 'image/svg+xml', body: utf8(DOT), suffix },
  { transaction: funding, vout: 0 },
)
const child = await inscribed(
  { contentType: 'text/plain', body: utf8('a child'), parent: parseOutpoint(dot.outpoint(0)) },
  { transaction: dot, vout: 0 },
)

/** Written for ord: it knows its paths, its ids and its shapes, and nothing of this host. */
const PAGE = `<!doctype html><title>a collection</title>
<img id="parent" src="/content/${dot.txid}i0"><p id="said"></p>
<script type="module">
  const id = '${dot.txid}i0'
  const json = async (path) => await (await fetch('/r/' + path)).json()
  const height = Number(await (await fetch('/r/blockheight')).text())
  const { ids, more, page } = await json('children/' + id)
  const { parents } = await json('parents/' + ids[0] + '/inscriptions')
  const { content_type, charms } = await json('inscription/' + id)
  const hex = await json('metadata/' + id)
  await document.getElementById('parent').decode()
  document.getElementById('said').textContent = JSON.stringify({
    origin: self.origin,
    height,
    time: new Date(1000 * await json('blocktime')).toISOString(),
    hash: await json('blockhash') === await json('blockhash/' + height),
    merkleRoot: (await json('blockinfo/' + height)).merkle_root,
    ids, more, page, content_type, charms,
    child: await (await fetch('/content/' + ids[0])).text(),
    parents: parents.map(({ id }) => id),
    metadata: hex.match(/../g).map((byte) => parseInt(byte, 16)),
    transaction: (await json('tx/' + id.slice(0, 64))).length,
    missing: (await fetch('/r/inscription/${'ab'.repeat(32)}i0')).status,
    width: document.getElementById('parent').naturalWidth,
  })
</script>`
const page = await inscribed(
  { contentType: 'text/html', body: utf8(PAGE) },
  {
    transaction: chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: Uint8Array.of(0x51) }] }),
    vout: 0,
  },
)

const outpoint = page.outpoint(0)
const onItsHost = `http://${outpointLabel(parseOutpoint(outpoint))}.c.localhost${port}`

inBrowser.each([
  ['below /content/, in its sandbox', `${server.url}/content/${page.txid}i0`, 'null'],
  ['on the host of its outpoint', `${onItsHost}/`, onItsHost],
])('a page written for the recursion of ord runs unchanged %s', async (_, url, origin) => {
  const { page: shown } = await browser.open(url)
  expect(await saidIn(shown)).toEqual({
    ...{ origin, height: 800_000, time: '2023-11-14T22:13:20.000Z', hash: true, merkleRoot: '11'.repeat(32) },
    ...{ ids: [`${child.txid}i0`], more: false, page: 0, content_type: 'image/svg+xml', charms: [] },
    ...{
      child: 'a child',
      parents: [`${dot.txid}i0`],
      transaction: 2 * dot.raw.length,
      missing: 404,
      width: 12,
    },
    // One entry, a text of 5 bytes, a text of 5.
    metadata: [0xa1, 0x65, ...utf8('title'), 0x65, ...utf8('a dot')],
  })
})
