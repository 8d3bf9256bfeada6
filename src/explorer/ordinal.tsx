import type { VNode } from 'preact'
import { unlessBlocked } from '../../backend/src/graph/blocklist.js'
import { dependency } from '../../backend/src/graph/dependencies.js'
import { attribute } from '../../backend/src/graph/listings.js'
import { type ContentSummary, TIP } from '../../backend/src/graph/records.js'
import { DirectoryError } from '../../backend/src/protocol/directory.js'
import { essenceOf } from '../../backend/src/protocol/media-type.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { kindOf } from './content-kinds.js'
import { directoryFiles, LISTED_FILES } from './directory-files.js'
import { dependenciesOfHeights, lifeOf, MapCard, Owner, Subject } from './ordinal-parts.js'
import { renderPage } from './page.js'
import {
  Badge,
  Card,
  type ContentView,
  FileList,
  Frame,
  Hex,
  hostText,
  NameLink,
  OutpointLink,
  openedAt,
  Preview,
  sizeText,
  Text,
  Tiles,
  When,
} from './parts.js'
import {
  contentsOf,
  contentView,
  contentViews,
  dependenciesOfChildren,
  dependenciesOfViews,
  type Explorer,
  type MadePage,
  nameHostUrl,
  PREVIEW_QUOTE,
  TILE_QUOTE,
} from './reads.js'
import { byteSize, count, counted, shortOutpoint, shown } from './text.js'

const CHILDREN = 8

/**
 * The page of an ordinal, by any output that it is or was in; undefined if this store does not hold the output.
 *
 * @param from The latest step of its history to show; by default, the last.
 */
export function ordinalPage(explorer: Explorer, asked: Outpoint, from?: number): MadePage | undefined {
  const { store, site } = explorer
  const output = store.ordinals.output(asked)
  const step = store.ordinals.at(asked, TIP)
  if (output === undefined) return undefined
  const tip = step?.output ?? output
  const origin = step?.origin
  const height = store.transactions.heightOf(tip.outpoint.txid)
  const spender = store.transactions.spenderOf(tip.outpoint)
  const map = step ? store.metadata.merged(step) : store.metadata.own(asked)
  const { history, steps, timeOf } = lifeOf(explorer, origin && asked, { from, height })
  const names = origin ? store.names.genuineOrigins([origin]) : []
  const found = origin
    ? store.listings.ordinalsBy({ attribute: attribute.parent(origin), limit: CHILDREN + 1 })
    : []
  const children = contentViews(explorer, contentsOf(found.slice(0, CHILDREN)), { quoted: TILE_QUOTE })
  const holder = step?.content ?? output
  const { content } = holder
  const kind = content && kindOf(content.contentType)
  const name = names[0]?.name
  const shownView =
    content && contentView(explorer, { outpoint: holder.outpoint, content }, { quoted: PREVIEW_QUOTE })
  // The host of a name shows its current content.
  const nameHost = shownView?.host && name && nameHostUrl(site, name)
  const view = shownView && nameHost ? { ...shownView, host: nameHost } : shownView
  const [originText, tipText, askedText] = [
    origin && formatOutpoint(origin),
    formatOutpoint(tip.outpoint),
    formatOutpoint(asked),
  ]
  const reference = originText === undefined ? askedText : `${originText}:-1`
  // Without an index, the preview is the list.
  const isListed = view?.files !== undefined && view.files.total > 0
  const directory =
    content && kind === 'directory' && !isListed
      ? directoryView(explorer, content, { src: view?.host?.slice(0, -1) ?? `/content/${reference}` })
      : undefined
  // The preview of the last chunk is that of the whole stream.
  const first =
    origin && kind === 'stream' ? unlessBlocked(() => store.ordinals.output(origin)?.content) : undefined
  const whole =
    origin && first && contentView(explorer, { outpoint: origin, content: first }, { quoted: PREVIEW_QUOTE })
  const seen = whole ?? view
  const isPlayed = first !== undefined && ['audio', 'video'].includes(kindOf(first.contentType))
  const opened = isPlayed
    ? `${site.gatewayPrefix}/stream/${originText}`
    : openedAt(view ?? {}, `/content/${reference}`)
  const title = whole?.stream
    ? `${shown(essenceOf(whole.contentType), 60)}, ${sizeText(whole)}`
    : shortOutpoint(originText ?? askedText)
  const parent = step ? step.parent : output.parent
  const path = `/ordinal/${askedText}`
  const hasMoved = !isSameOutpoint(asked, tip.outpoint)
  const html = renderPage({
    site,
    title: name ?? (whole?.stream ? `A stream: ${title}` : `Ordinal ${title}`),
    description: content
      ? `An inscription: ${shown(content.contentType, 60)}, ${byteSize(content.length)}.`
      : 'An ordinal.',
    section: 'inscriptions',
    path,
    children: (
      <Subject
        explorer={explorer}
        {...{
          title,
          whole: originText ?? askedText,
          name: undefined,
          path,
          origin: originText,
          tip: tipText,
        }}
        began={name === undefined ? 'Inscribed' : 'Mined'}
        verdict={{
          kind: 'plain',
          text: origin === undefined ? 'Its origin is not known here' : `Step ${count(step?.sequence ?? 0)}`,
        }}
        badges={
          <>
            {height === undefined && <Badge kind="wait">Unconfirmed</Badge>}
            {spender !== undefined && (
              <Badge kind="bad">Spent: burnt, or moved where this host cannot follow</Badge>
            )}
            {hasMoved && <Badge kind="plain">Shown as it is now</Badge>}
          </>
        }
        proof={{
          href: `${site.gatewayPrefix}/provenance/${tipText}`,
          file: `${tipText}.provenance.beef`,
          text: 'Provenance',
        }}
        open={view && { href: opened, what: isPlayed ? 'the stream' : 'content' }}
        shown={
          <>
            {view && (
              <Frame
                address={
                  <>
                    <a href={opened}>
                      {view.host === undefined
                        ? `${isPlayed ? '/stream/' : '/content/'}${shortOutpoint(originText ?? askedText)}`
                        : hostText(view.host)}
                    </a>
                    <span>{sizeText(seen ?? view)}</span>
                  </>
                }
              >
                <Preview
                  content={isPlayed ? { ...view, contentType: first.contentType } : view}
                  reference={reference}
                  stream={isPlayed ? opened : `${site.gatewayPrefix}/stream/${view.outpoint}`}
                />
              </Frame>
            )}
            {directory}
          </>
        }
        life={{ history, steps }}
        facts={{
          Name: name === undefined ? undefined : <NameLink name={name} />,
          Content: seen && <ContentType content={seen} />,
          Owner: <Owner explorer={explorer} owner={tip.owner} />,
          Mined: <When height={height} time={timeOf(height)} />,
          Origin: originText && <OutpointLink outpoint={originText} what="origin" />,
          'Now at': <OutpointLink outpoint={tipText} what="tip" />,
          Steps: history && counted(history.last, 'step'),
          Value: counted(tip.satoshis, 'satoshi'),
          Parent: parent && <OutpointLink outpoint={formatOutpoint(parent)} what="parent" />,
          'SHA-256': content && <Hex text={content.sha256} what="SHA-256" />,
          'As JSON': <a href={`${site.gatewayPrefix}/metadata/${reference}`}>the metadata</a>,
        }}
        beside={
          <>
            <MapCard title="Metadata (MAP)" map={map} />
            {children.length > 0 && originText !== undefined && (
              <Card
                title="Children"
                {...(found.length > CHILDREN && {
                  link: { href: `/parent/${originText}`, text: 'All children' },
                })}
              >
                <Tiles contents={children} />
              </Card>
            )}
          </>
        }
      />
    ),
  })
  return {
    html,
    dependsOn: [
      dependency.lineages,
      dependency.proof(tip.outpoint.txid),
      dependency.spend(tip.outpoint),
      ...dependenciesOfHeights(steps),
      ...dependenciesOfViews([...(view ? [view] : []), ...children]),
      ...(origin ? dependenciesOfChildren(attribute.parent(origin), found) : []),
      // Any later transaction may give this output an origin, or make the name genuine.
      ...(step === undefined || (kind === 'name' && name === undefined) ? [dependency.all] : []),
    ],
  }
}

function ContentType({ content }: { content: ContentView }): VNode {
  const type = essenceOf(content.contentType)
  return (
    <>
      <a href={`/type?${new URLSearchParams({ type })}`}>
        <Text text={content.contentType} />
      </a>
      {`, ${sizeText(content)}`}
    </>
  )
}

/** The longest directory that is listed, in bytes: one chunk of the store. */
const LISTED_BYTES = 256 * 1024

/** The files of a directory, as many as a page lists. @param options.src Where the directory is served. */
function directoryView(explorer: Explorer, content: ContentSummary, { src }: { src: string }): VNode {
  if (content.length > LISTED_BYTES)
    return (
      <Card title="Files">
        <p class="hint">This directory of {byteSize(content.length)} is too long to list here.</p>
      </Card>
    )
  try {
    const { names, total } = directoryFiles(explorer, content, { most: LISTED_FILES })
    return (
      <Card title={counted(total, 'file')} id="files">
        <FileList names={names} total={total} src={src} />
      </Card>
    )
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error
    return (
      <Card title="Files">
        <p class="hint">
          <Text text={`This is not a directory: ${error.message}`} most={200} />
        </p>
      </Card>
    )
  }
}
