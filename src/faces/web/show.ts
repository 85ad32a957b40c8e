/** Connects lit-html to signals, so that a template is rendered again when a signal that it reads changes. */
import { effect } from '@preact/signals-core';
import { render, type TemplateResult } from 'lit-html';

/**
 * Renders a template into an element, and again whenever a signal that it reads changes.
 * @returns a function that stops the updates
 */
export function show(element: HTMLElement, template: () => TemplateResult): () => void {
  return effect(() => {
    render(template(), element);
  });
}
