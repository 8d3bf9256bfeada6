import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { KIND_LABELS, kindShown } from './content-kinds.js'
import { prefixesText, sizeText } from './parts.js'
import { blockTimes, contentViews, type Explorer, TILE_QUOTE } from './reads.js'
import { count, escaped } from './text.js'

// Atom (RFC 4287). Every entry needs a time; an unproven transaction has none, and takes the newest known one. Links are below
// the public URL of the host, or relative: caches and readers share a feed, so it must not contain a request's `Host`. An id is
// never relative (4.2.6): a host that does not know its URL writes tags (RFC 4151), which are the same on every host.

const ENTRIES = 30

const INCOMPLETE = 'Incomplete: this host is still following the tree of names.'

interface Entry {
  /** The path of its page; the id contains it, too. */
  path: string
  title: string
  text: string
  time: number | undefined
}

export function namesFeed(explorer: Explorer, base: string): string {
  const names = explorer.store.things.names({ limit: ENTRIES })
  const timeOf = blockTimes(explorer, names)
  const entries = names.map(({ name, height, ...folded }) => ({
    path: `/name/${name}`,
    title: name,
    text: `Mined ${height === undefined ? 'and in no block yet' : `in block ${count(height)}`}${also(folded)}.`,
    time: timeOf(height),
  }))
  const isIncomplete = explorer.site.catchingUp !== undefined
  return feed({ base, path: '/feeds/names.atom', title: 'Newest names', entries, isIncomplete })
}

function also(folded: Parameters<typeof prefixesText>[0]): string {
  const text = prefixesText(folded)
  return text === undefined ? '' : `, ${text} on the way`
}

export function inscriptionsFeed(explorer: Explorer, base: string): string {
  const outputs = explorer.store.things.inscriptions({ limit: ENTRIES })
  const timeOf = blockTimes(explorer, outputs)
  const views = contentViews(explorer, outputs, { quoted: TILE_QUOTE })
  const entries = outputs.map(({ outpoint, content, height }, at) => {
    const view = views[at] ?? content
    const label = `${KIND_LABELS[kindShown(view)]}, ${sizeText(view)}`
    return {
      path: `/ordinal/${formatOutpoint(outpoint)}`,
      title: `An inscription: ${label}`,
      text: height === undefined ? 'In no block yet.' : `In block ${count(height)}.`,
      time: timeOf(height),
    }
  })
  return feed({ base, path: '/feeds/inscriptions.atom', title: 'Newest inscriptions', entries })
}

function feed({
  base,
  path,
  title,
  entries,
  isIncomplete = false,
}: {
  base: string
  path: string
  title: string
  entries: Entry[]
  isIncomplete?: boolean
}): string {
  const newest = Math.max(0, ...entries.flatMap(({ time }) => time ?? []))
  const updated = (time = newest): string => new Date(time).toISOString()
  const idOf = (own: string): string => escaped((base || 'tag:minetree,2026:') + own)
  const parts = entries.map(
    (entry) =>
      `<entry><id>${idOf(entry.path)}</id><title>${escaped(entry.title)}</title><link href="${escaped(base + entry.path)}"/><updated>${updated(entry.time)}</updated><summary>${escaped(entry.text)}</summary></entry>`,
  )
  const note = isIncomplete ? `<subtitle>${INCOMPLETE}</subtitle>` : ''
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>${idOf(path)}</id><title>${escaped(`minetree: ${title}`)}</title>${note}<author><name>minetree</name></author><link rel="self" href="${escaped(base + path)}"/><link href="${escaped(`${base}/`)}"/><updated>${updated()}</updated>${parts.join('')}</feed>
`
}
