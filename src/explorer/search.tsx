import { decodeAddress } from '../../backend/src/protocol/address.js'
import { isName, nameMeant } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { nameOffers } from '../../backend/src/read/name-offer.js'
import { renderPage } from './page.js'
import { Card, Empty, Head, NameList, OutpointLink, Text } from './parts.js'
import type { Explorer } from './reads.js'
import { shown } from './text.js'

const SUGGESTED = 20

/** The result of a search: the path of a page, or a page that says what there is instead. */
export type Found = { kind: 'page'; path: string } | ({ kind: 'none' } & NothingFound)

interface NothingFound {
  html: string
  /** 503: the host is catching up, so the name may exist. */
  status: 200 | 404 | 503
}

/** Looks for a name, an outpoint, a transaction or an address. Takes at most six indexed reads. */
export function search(explorer: Explorer, query: string): Found {
  const text = query.trim()
  if (text === '') return { kind: 'page', path: '/' }
  const outpoint = readOutpoint(text.toLowerCase())
  if (outpoint !== undefined) {
    const written = formatOutpoint(outpoint)
    const isHeld = explorer.store.ordinals.output(outpoint) !== undefined
    return { kind: 'page', path: isHeld ? `/ordinal/${written}` : `/tx/${outpoint.txid}` }
  }
  const word = text.toLowerCase()
  if (/^[0-9a-f]{64}$/.test(word) && explorer.store.transactions.has(word))
    return { kind: 'page', path: `/tx/${word}` }
  if (decodeAddress(text) !== undefined) return { kind: 'page', path: `/address/${text}` }
  const name = nameMeant(text)
  // A free name has a page, too.
  if (name !== undefined && (explorer.store.names.originOf(name) !== undefined || isFree(explorer, name)))
    return { kind: 'page', path: `/name/${name}` }
  return { kind: 'none', ...nothing(explorer, text, name) }
}

/** Whether a name can be mined, as far as this host knows. */
function isFree({ store, site, tree }: Explorer, name: string): boolean {
  return site.catchingUp === undefined && nameOffers(store)(name, tree).kind === 'free'
}

/** Names that a text which is none may stand for. */
function namesNear(text: string): string[] {
  const [words, word] = ['-', ''].map((between) =>
    text
      .trim()
      .toLowerCase()
      .split(/[\s_.]+/)
      .join(between),
  )
  return [...new Set([words ?? '', word ?? ''])].filter(isName)
}

function nothing({ store, site }: Explorer, text: string, name: string | undefined): NothingFound {
  const begin = name === undefined ? [] : store.names.byPrefix({ prefix: name, limit: SUGGESTED })
  const near = name === undefined ? namesNear(text) : []
  const isUnknown = name !== undefined && site.catchingUp !== undefined
  const html = renderPage({
    site,
    title: 'Search',
    path: '/search',
    isUnlisted: true,
    query: shown(text, 255),
    children: (
      <>
        <Head
          title={
            begin.length > 0 ? 'Names with this prefix' : isUnknown ? 'Not known here yet' : 'Nothing found'
          }
          lede={
            name === undefined ? (
              <>
                <Text text={text} most={120} /> is not a name, nor an outpoint, transaction or address that
                this host has.
              </>
            ) : isUnknown ? (
              <>
                <b class="name">{name}</b> itself is not found yet.
              </>
            ) : (
              <>
                Nobody has mined <b class="name">{name}</b> itself yet, and it cannot be mined here.
              </>
            )
          }
        />
        {near.length > 0 && (
          <Card title="Did you mean">
            <NameList names={near.map((name) => ({ name }))} />
          </Card>
        )}
        {begin.length > 0 && (
          <Card title="Names">
            <NameList
              names={begin.map(({ name, outpoint }) => ({
                ...{ name, more: <OutpointLink outpoint={formatOutpoint(outpoint)} what="origin" /> },
              }))}
            />
          </Card>
        )}
        {begin.length === 0 && near.length === 0 && name === undefined && (
          <Empty>
            A name has letters a to z, digits and hyphens; an outpoint is a transaction id, an underscore and
            a number.
          </Empty>
        )}
      </>
    ),
  })
  return { html, status: begin.length > 0 ? 200 : isUnknown ? 503 : 404 }
}
