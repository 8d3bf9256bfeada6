import { messageOf } from '../../../backend/src/protocol/coded-error.js'

/**
 * The element of the page with this id.
 * @throws Error if there is none of that kind: page and script do not match.
 */
export function element<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id)
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} called ${id}`)
  return found
}

/** A new element. Text children stay text, so strangers' text is safe. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>>,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children)
  return made
}

export function button(text: string, press: () => void, kind: 'ghost' | '' = 'ghost'): HTMLButtonElement {
  const made = make('button', { type: 'button', class: `btn ${kind}` }, text)
  made.addEventListener('click', press)
  return made
}

export function reasonOf(error: unknown): string {
  const message = typeof error === 'string' ? error : messageOf(error)
  return message.endsWith('.') ? message : `${message}.`
}
