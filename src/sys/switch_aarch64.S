/* SPDX-License-Identifier: MIT */
/* AAPCS64: x19-x28, the frame pointer x29, the link register x30, sp, the low halves of v8-v15 and FPCR belong to the
 * callee. Frame of a parked task, from its saved sp:
 *
 *      0  x29 x30   16 x19 x20  32 x21 x22  48 x23 x24  64 x25 x26  80 x27 x28
 *     96  d8 d9    112 d10 d11 128 d12 d13 144 d14 d15 160 FPCR, 0
 *
 * Return addresses are not signed in here (the function is a leaf and keeps x30 raw), landing pads are there: BTI yes,
 * PAC no. */

        .text

.macro save_state
        sub     sp, sp, #176
        .cfi_adjust_cfa_offset 176
        stp     x29, x30, [sp]
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        str     x9, [sp, #160]
        mov     x10, sp
        str     x10, [x0]
.endm

/* void rs_switch(void **save, void *to); */
        .globl  rs_switch
        .hidden rs_switch
        .type   rs_switch, %function
        .p2align 4
rs_switch:
        .cfi_startproc
        hint    #34
        save_state
        mov     sp, x1
resume:
        ldr     x10, [sp, #160]
        cmp     x9, x10
        b.eq    1f
        msr     fpcr, x10
1:      ldp     x29, x30, [sp]
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #176
        .cfi_adjust_cfa_offset -176
        ret
        .cfi_endproc
        .size   rs_switch, .-rs_switch

/* void rs_switch_new(void **save, void *top, void *(*entry)(void), uint64_t control); */
        .globl  rs_switch_new
        .hidden rs_switch_new
        .type   rs_switch_new, %function
        .p2align 4
rs_switch_new:
        .cfi_startproc
        hint    #34
        save_state
        .cfi_endproc
        .size   rs_switch_new, .-rs_switch_new

/* The bottom of every task's stack: the unwinder stops here. */
        .type   rs_switch_bottom, %function
rs_switch_bottom:
        .cfi_startproc
        .cfi_undefined x30
        mov     sp, x1
        cmp     x9, x3
        b.eq    1f
        msr     fpcr, x3
1:      mov     x29, xzr
        mov     x30, xzr
        stp     x29, x30, [sp, #-16]!
        blr     x2
        mov     sp, x0
        mrs     x9, fpcr
        b       resume
        .cfi_endproc
        .size   rs_switch_bottom, .-rs_switch_bottom

/* size_t rs_switch_visit(void *parked, size_t (*fn)(void *arg), void *arg);
 * Nothing is switched: only what the unwinder is told of the caller is not true. While fn runs, this frame says that it
 * was called by the parked context, whose registers lie where save_state has put them. */
        .globl  rs_switch_visit
        .hidden rs_switch_visit
        .type   rs_switch_visit, %function
        .p2align 4
rs_switch_visit:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        str     x19, [sp, #16]
        .cfi_offset x19, -16
        mov     x29, sp
        mov     x19, x0
        mov     x0, x2
        .cfi_remember_state
        .cfi_def_cfa x19, 176
        .cfi_offset x29, -176
        .cfi_offset x30, -168
        .cfi_offset x19, -160
        .cfi_offset x20, -152
        .cfi_offset x21, -144
        .cfi_offset x22, -136
        .cfi_offset x23, -128
        .cfi_offset x24, -120
        .cfi_offset x25, -112
        .cfi_offset x26, -104
        .cfi_offset x27, -96
        .cfi_offset x28, -88
        /* 72 to 79 are v8 to v15: assemblers differ in their names here */
        .cfi_offset 72, -80
        .cfi_offset 73, -72
        .cfi_offset 74, -64
        .cfi_offset 75, -56
        .cfi_offset 76, -48
        .cfi_offset 77, -40
        .cfi_offset 78, -32
        .cfi_offset 79, -24
        blr     x1
        .cfi_restore_state
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_adjust_cfa_offset -32
        .cfi_restore x19
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   rs_switch_visit, .-rs_switch_visit

/* int rs_switch_call(void *parked, int (*fn)(void *arg), void *arg); */
        .globl  rs_switch_call
        .hidden rs_switch_call
        .type   rs_switch_call, %function
        .p2align 4
rs_switch_call:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        mov     sp, x0
        mov     x0, x2
        blr     x1
        mov     sp, x29
        .cfi_def_cfa_register sp
        ldp     x29, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   rs_switch_call, .-rs_switch_call

/* uint64_t rs_switch_control(void); */
        .globl  rs_switch_control
        .hidden rs_switch_control
        .type   rs_switch_control, %function
        .p2align 4
rs_switch_control:
        .cfi_startproc
        hint    #34
        mrs     x0, fpcr
        ret
        .cfi_endproc
        .size   rs_switch_control, .-rs_switch_control

/* void rs_switch_control_set(uint64_t control); */
        .globl  rs_switch_control_set
        .hidden rs_switch_control_set
        .type   rs_switch_control_set, %function
        .p2align 4
rs_switch_control_set:
        .cfi_startproc
        hint    #34
        mrs     x9, fpcr
        cmp     x9, x0
        b.eq    1f
        msr     fpcr, x0
1:      ret
        .cfi_endproc
        .size   rs_switch_control_set, .-rs_switch_control_set

        .section .note.GNU-stack, "", %progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000000, 4, 1, 0
