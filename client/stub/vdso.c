/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdso - finds the kernel's own clock_gettime() and getrandom().
 *
 * A cached ID costs little but the look at the clock, and a fourth of that is
 * the C library's way to this very function.  The image is an ELF object
 * (elf(5)) that the kernel maps into each process; it holds one symbol table,
 * whose length DT_HASH tells.  An image that is made in any other way is left
 * alone: then the C library's function does, only slower.
 */
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "vdso.h"

#if defined(__aarch64__)
#define PREFIX "__kernel_"
#else
#define PREFIX "__vdso_"
#endif

/* Addresses in the image are relative to where it was loaded. */
struct image {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash; /* nbucket, nchain, ...; nchain symbols */
};

static bool
image_read(struct image *v, const ElfW(Ehdr) * header)
{
	uintptr_t at = (uintptr_t)header;
	const ElfW(Phdr) *p = (const void *)(at + header->e_phoff);
	const ElfW(Dyn) *d = NULL;
	bool loaded = false;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return (false);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && !loaded) {
			v->base = at + p[i].p_offset - p[i].p_vaddr;
			loaded = true;
		} else if (p[i].p_type == PT_DYNAMIC) {
			d = (const void *)(at + p[i].p_offset);
		}
	}
	if (!loaded || d == NULL)
		return (false);
	for (; d->d_tag != DT_NULL; d++) {
		const void *to = (const void *)(v->base + d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			v->symbols = to;
		else if (d->d_tag == DT_STRTAB)
			v->strings = to;
		else if (d->d_tag == DT_HASH)
			v->hash = to;
	}
	return (v->symbols != NULL && v->strings != NULL && v->hash != NULL);
}

/* The address of a symbol in the image, or 0. */
static uintptr_t
image_find(const void *header, const char *name)
{
	struct image v = { 0 };

	if (header == NULL || !image_read(&v, header))
		return (0);
	for (uint32_t i = 0; i < v.hash[1]; i++) {
		const ElfW(Sym) *s = &v.symbols[i];

		if (s->st_shndx != SHN_UNDEF &&
		    strcmp(v.strings + s->st_name, name) == 0)
			return (v.base + s->st_value);
	}
	return (0);
}

vdso_clock
vdso_find_clock_in(const void *header)
{
	uintptr_t at = image_find(header, PREFIX "clock_gettime");
	struct timespec ts;

	if (at != 0 && ((vdso_clock)at)(CLOCK_MONOTONIC_COARSE, &ts) == 0)
		return ((vdso_clock)at);
	return (clock_gettime);
}

vdso_clock
vdso_find_clock(void)
{
	return (vdso_find_clock_in((const void *)getauxval(AT_SYSINFO_EHDR)));
}

vdso_random
vdso_find_random(struct vdso_random_params *out)
{
	const void *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	uintptr_t at = image_find(header, PREFIX "getrandom");

	/* asked with this size it says what memory it needs */
	if (at == 0 || ((vdso_random)at)(NULL, 0, 0, out, SIZE_MAX) != 0 ||
	    out->state_size == 0)
		return (NULL);
	return ((vdso_random)at);
}
