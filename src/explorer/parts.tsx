import type { ComponentChildren, VNode } from 'preact'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { NameThing } from '../../backend/src/read/things.js'
import { isQuotable, KIND_LABELS, kindShown } from './content-kinds.js'
import type { DirectoryFiles, DirectorySize } from './directory-files.js'
import { byteSize, count, counted, isWellFormed, moment, shortened, shortOutpoint, shown } from './text.js'

/** A stranger's text, isolated from the direction of the text around it. */
export function Text({ text, most }: { text: string; most?: number }): VNode {
  return <bdi dir="auto">{shown(text, most)}</bdi>
}

/** A name, which leads to its page. Names are ASCII. */
export function NameLink({ name, isLarge = false }: { name: string; isLarge?: boolean }): VNode {
  return (
    <a class={isLarge ? 'name large' : 'name'} href={`/name/${name}`}>
      {name}
    </a>
  )
}

/** How many prefixes a name of a list stands for as well. */
export function prefixesText({ prefixes = 0, isMore = false }: Partial<FoldedPrefixes>): string | undefined {
  return prefixes === 0
    ? undefined
    : `and ${isMore ? 'more than ' : ''}${counted(prefixes, 'prefix', 'prefixes')}`
}

type FoldedPrefixes = Pick<NameThing, 'prefixes' | 'isMore'>

export function WithPrefixes(folded: Partial<FoldedPrefixes>): VNode | null {
  const text = prefixesText(folded)
  return text === undefined ? null : <span class="also">{text}</span>
}

/** A button that copies a text; a script shows it. */
export function Copy({ text, what }: { text: string; what: string }): VNode {
  return (
    <button class="copy" type="button" hidden data-copy={text} aria-label={`Copy the ${what}`}>
      copy
    </button>
  )
}

/** A shortened hex or address, with all of it in its title and a button to copy it. */
export function Hex({ text, what, href }: { text: string; what: string; href?: string }): VNode {
  const short = text.includes('_') ? shortOutpoint(text) : shortened(text)
  const word = (
    <span class="hex" title={text}>
      {short}
    </span>
  )
  return (
    <span class="copyable">
      {href === undefined ? word : <a href={href}>{word}</a>}
      <Copy text={text} what={what} />
    </span>
  )
}

export function OutpointLink({ outpoint, what = 'outpoint' }: { outpoint: string; what?: string }): VNode {
  return <Hex text={outpoint} what={what} href={`/ordinal/${outpoint}`} />
}

/** A moment; a script shows how long ago it was. */
export function Time({ at }: { at: number }): VNode {
  return (
    <time datetime={new Date(at).toISOString()} data-ago>
      {moment(at)}
    </time>
  )
}

/** When something came into the chain: its block, and how long ago that was. */
export function When({ height, time }: { height?: number | undefined; time?: number | undefined }): VNode {
  return (
    <>
      {height === undefined ? 'in no block yet' : `in block ${count(height)}`}
      {time !== undefined && (
        <>
          {', '}
          <Time at={time} />
        </>
      )}
    </>
  )
}

export type BadgeKind = 'good' | 'wait' | 'bad' | 'plain'

/** A state, in words; colour only repeats them. */
export function Badge({ kind, children }: { kind: BadgeKind; children: ComponentChildren }): VNode {
  return <span class={kind === 'good' ? 'badge' : `badge ${kind}`}>{children}</span>
}

export function Card({
  title,
  link,
  id,
  children,
  ...rest
}: {
  title?: string
  link?: { href: string; text: string }
  id?: string
  class?: string
  children: ComponentChildren
}): VNode {
  const heading = title === undefined ? undefined : (id ?? title.toLowerCase().replace(/[^a-z]+/g, '-'))
  return (
    <section class={rest.class === undefined ? 'card' : `card ${rest.class}`} aria-labelledby={heading}>
      {title !== undefined && (
        <header>
          <h2 id={heading}>{title}</h2>
          {link && <a href={link.href}>{link.text}</a>}
        </header>
      )}
      {children}
    </section>
  )
}

/** Steps in order, each with more about it. @param now The number of the one that is marked, from 0. */
export function Steps({ steps, now }: { steps: Readonly<Record<string, string>>; now?: number }): VNode {
  return (
    <ol class="steps">
      {Object.entries(steps).map(([step, more], at) => (
        <li key={step} class={at === now ? 'now' : undefined}>
          {step}
          <small>{more}</small>
        </li>
      ))}
    </ol>
  )
}

/** Of fields for names and addresses, which nobody corrects. */
export const VERBATIM = { autocomplete: 'off', autocapitalize: 'none', spellcheck: false } as const

/** Terms and what is known of them; rows without a value are left out. */
export function Facts({ rows }: { rows: [term: string, value: ComponentChildren][] }): VNode {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== undefined && value !== null && value !== false)
        .map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

/** A link to the next page of a list, and one back to its start. */
export function Pager({
  first,
  next,
}: {
  first?: string | undefined
  next?: string | undefined
}): VNode | null {
  if (first === undefined && next === undefined) return null
  return (
    <nav class="pager" aria-label="Pages">
      {first !== undefined && (
        <a class="btn ghost" href={first}>
          From the start
        </a>
      )}
      {next !== undefined && (
        <a class="btn ghost" href={next} rel="next">
          More
        </a>
      )}
    </nav>
  )
}

export function Empty({ children }: { children: ComponentChildren }): VNode {
  return <p class="empty">{children}</p>
}

/** An inscription, as far as a tile or a preview shows it. */
export interface ContentView {
  outpoint: string
  /** As inscribed. */
  contentType: string
  /** The type of what a patch makes, if this store has what it is built on. */
  shows?: string | undefined
  /** In bytes. */
  length: number
  /** The start of short text. */
  quote?: string | undefined
  /** Where the image can be had in other sizes. */
  image?: string | undefined
  /** The URL of the host that it has for itself, if it opens as a page. */
  host?: string | undefined
  /** The files of a short directory that has no index: nothing opens as a page. */
  files?: DirectoryFiles | undefined
  leadsTo?: DirectorySize | undefined
  /** The whole of a stream of which this is the first chunk: bytes as far as they are counted, and the last chunk of these. */
  stream?: { length: number; isMore: boolean; last: Outpoint } | undefined
}

/** Of how many files a tile has room for the names. */
const TILE_FILES = 5
/** Larger images are not loaded for a tile, in bytes. */
const TILE_IMAGE = 2_000_000

/** How large content is: of a directory, what it leads to; of a stream, all of it. */
export function sizeText({
  length,
  shows,
  leadsTo,
  stream,
}: Pick<ContentView, 'length' | 'shows' | 'leadsTo' | 'stream'>): string {
  const more = (isMore: boolean): string => (isMore ? 'more than ' : '')
  if (shows !== undefined) return `patch of ${byteSize(length)}`
  if (stream !== undefined) return more(stream.isMore) + byteSize(stream.length)
  if (leadsTo === undefined || leadsTo.files === 0) return byteSize(length)
  const { files, bytes, isMore } = leadsTo
  return `${more(isMore)}${counted(files, 'file')}, ${byteSize(bytes)}`
}

export function contentLabel(
  content: Pick<ContentView, 'contentType' | 'length' | 'shows' | 'leadsTo' | 'stream'>,
): string {
  return `${KIND_LABELS[kindShown(content)]} · ${sizeText(content)}`
}

/** A small preview of an inscription, which leads to its page. */
export function Tile({ content }: { content: ContentView }): VNode {
  const kind = kindShown(content)
  const type = shown(content.contentType, 40)
  return (
    <a class="tile" href={`/ordinal/${content.outpoint}`}>
      <span class="p">
        <TileContent content={content} />
      </span>
      <span class="caption">
        <span title={type}>{content.files ? 'directory' : KIND_LABELS[kind]}</span>
        <span>{sizeText(content)}</span>
      </span>
    </a>
  )
}

function TileContent({ content }: { content: ContentView }): VNode {
  const { outpoint, contentType, length, quote, files, host, image } = content
  const kind = kindShown(content)
  if (files !== undefined)
    return files.total === 0 ? (
      <span class="glyph">an empty directory</span>
    ) : (
      <span class="quote">
        {files.names.slice(0, TILE_FILES).map((name) => (
          <>
            <Text text={name} most={40} />
            {'\n'}
          </>
        ))}
        {files.total > TILE_FILES && `and ${count(files.total - TILE_FILES)} more`}
      </span>
    )
  if (quote !== undefined)
    return (
      <span class="quote">
        <Text text={quote} most={140} />
      </span>
    )
  if (image !== undefined)
    return (
      <img
        src={squareOf(image, 192)}
        srcset={[192, 384, 512].map((side) => `${squareOf(image, side)} ${side}w`).join()}
        sizes="160px"
        alt=""
        loading="lazy"
        decoding="async"
        width="160"
        height="160"
      />
    )
  // Of a stream, its first chunk alone is at this path.
  if (kind === 'image' && length <= TILE_IMAGE && content.stream === undefined)
    return (
      <img src={`/content/${outpoint}`} alt="" loading="lazy" decoding="async" width="160" height="160" />
    )
  if (kind === 'page' || kind === 'directory')
    return (
      <iframe
        src={`${host ?? `/content/${outpoint}`}?framed`}
        title={`Preview of a ${KIND_LABELS[kind]}`}
        sandbox=""
        loading="lazy"
        tabindex={-1}
        aria-hidden="true"
        referrerpolicy="no-referrer"
        width="640"
        height="640"
      />
    )
  return (
    <span class="glyph">
      <Text text={contentType} most={40} />
    </span>
  )
}

function squareOf(image: string, side: number): string {
  return `${image}?w=${side}&h=${side}&fit=fill`
}

/** Where content opens: on its host, or else where the content route has it. A directory without an index does as it was inscribed. */
export function openedAt({ files, host }: Pick<ContentView, 'files' | 'host'>, src: string): string {
  return files === undefined ? (host ?? src) : `${host ?? src}?raw`
}

/** The name of a host from its URL. That of an outpoint is shortened. */
export function hostText(host: string): string {
  return host.slice(2, -1).replace(/^(\w{8})\w{40}(\w{8}\.)/, '$1…$2')
}

/** What content looks like, as large as a page has room for it. Nothing of it runs outside its sandbox. */
export function Preview({
  content,
  reference,
  stream,
}: {
  content: ContentView
  /** Where the content route has it: an outpoint, with a sequence or without. */
  reference: string
  /** Where the whole stream is, if the content begins one. */
  stream?: string | undefined
}): VNode {
  const kind = kindShown(content)
  const src = `/content/${reference}`
  const { host = src } = content
  if (content.files !== undefined) return <Files files={content.files} src={host.replace(/\/$/, '')} />
  if (content.quote !== undefined)
    return (
      <pre class="quoted">
        <Text text={content.quote} most={4000} />
      </pre>
    )
  if (kind === 'image')
    return (
      <img
        class="view"
        src={content.stream === undefined ? src : (stream ?? src)}
        alt="What is inscribed"
        loading="lazy"
        decoding="async"
      />
    )
  if (kind === 'audio')
    return (
      // biome-ignore lint/a11y/useMediaCaption: a stranger's recording has none
      <audio class="view" controls preload="none" src={stream ?? src} />
    )
  if (kind === 'video')
    return (
      // biome-ignore lint/a11y/useMediaCaption: a stranger's film has none
      <video class="view" controls preload="none" src={stream ?? src} />
    )
  // What patches make of a text is not quoted.
  if (kind === 'page' || kind === 'directory' || (content.shows !== undefined && isQuotable(kind)))
    return (
      <iframe
        class="view"
        src={`${host}?framed`}
        title="What is inscribed, in a sandbox"
        sandbox="allow-scripts"
        loading="lazy"
        referrerpolicy="no-referrer"
      />
    )
  return (
    <p class="view none">
      <span>
        {byteSize(content.length)} of <Text text={content.contentType} />
      </span>
      <a class="btn ghost" href={src}>
        Open the content
      </a>
    </p>
  )
}

function Files({ files: { names, total }, src }: { files: DirectoryFiles; src: string }): VNode {
  if (total === 0) return <p class="view none">A directory without a file that could be opened.</p>
  return (
    <div class="view files">
      <p class="hint">A directory of {counted(total, 'file')} without an index: they open one by one.</p>
      <FileList names={names} total={total} src={src} />
    </div>
  )
}

/** The first files of a directory, which is at a path, and how many more it has. */
export function FileList({
  names,
  total,
  src,
}: {
  names: readonly string[]
  total: number
  src: string
}): VNode {
  return (
    <>
      <ul class="rows">
        {names.map((name) => {
          const text = <Text text={name} most={120} />
          const path = filePath(src, name)
          return <li key={name}>{path === undefined ? text : <a href={path}>{text}</a>}</li>
        })}
      </ul>
      {total > names.length && <p class="hint">And {counted(total - names.length, 'more file')}.</p>}
    </>
  )
}

/** The longest name of a file that a link carries, in characters. */
const LINKED_NAME = 200

/** Where a file of a directory is; undefined for a name that no URL can carry as a segment of its path. */
function filePath(directory: string, name: string): string | undefined {
  if (name.length > LINKED_NAME || /^\.{0,2}$/.test(name) || !isWellFormed(name)) return undefined
  return `${directory}/${encodeURIComponent(name)}`
}

/** An image, a page or text in a frame that says where it is served. */
export function Frame({
  address,
  children,
}: {
  address: ComponentChildren
  children: ComponentChildren
}): VNode {
  return (
    <div class="frame">
      <div class="url">{address}</div>
      {children}
    </div>
  )
}
